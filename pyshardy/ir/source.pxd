# Types for the optional compiled core: see docs/performance.md.

cdef class Kind:
    cdef public str name
    cdef public dict attrs
    cdef public bytes head
    cdef public int mask
    cdef public bytes tail
    cdef public Py_ssize_t attributes
    cdef public Py_ssize_t properties
