"""Import: from a module as it arrives to one that shardings can propagate through."""
