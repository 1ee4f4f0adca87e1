# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Op


cdef class _Changer:
    cdef public object _change
    cdef public dict _changed

    @cython.locals(attrs=dict, entry=dict)
    cpdef apply_to(self, Op op)
    cpdef apply(self, dict attrs, name)
