"""Import: from a module as given to one that shardings can propagate through."""
