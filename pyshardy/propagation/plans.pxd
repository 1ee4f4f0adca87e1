# Types for the optional compiled core: see docs/performance.md.


cdef class StepPlan:
    cdef public object step
    cdef public int same
    cdef public dict outcomes
    cdef public bint waits


cdef class Plans:
    cdef public object _meshes
    cdef public object _kinds
    cdef public bint _is_conservative
    cdef public dict _plans
    cdef public dict _outcomes
