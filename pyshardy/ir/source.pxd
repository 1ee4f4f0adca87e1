# Types for the optional compiled core: see docs/performance.md.

cdef class SourceKind:
    cdef public str op_name
    cdef public object attrs
    cdef public Py_ssize_t name
    cdef public Py_ssize_t attributes
    cdef public Py_ssize_t properties


cdef class Source:
    cdef public object module
    cdef public object code
    cdef public list kinds
    cdef public object locations
    cdef public object blocks
    cdef public object places
    cdef public object mlir
    cdef public dict types
    cdef public dict arg_places
    cdef public dict _found
