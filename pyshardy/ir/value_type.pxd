# Types for the optional compiled core: see docs/performance.md.


cdef class ValueType:
    cdef public object mlir
    cdef public object shape
    cdef public str element
    cdef public bint is_shaped
    cdef public bint is_ranked_tensor
    cdef public bint is_static
