"""From global to local, one file per family of ops (partitioner spec, sections 8 and 9)."""
