# No types: a compiled generator hands out an op in half the time.
