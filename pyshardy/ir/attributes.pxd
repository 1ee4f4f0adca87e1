# Types for the optional compiled core: see docs/performance.md.
# Python looks up `in` and `[]` by name in a subclass of dict; in a class of the compiled core it does not.


cdef class Attributes(dict):
    pass
