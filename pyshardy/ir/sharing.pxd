# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Op, id


cdef class SharedChanges:
    cdef public dict _made

    @cython.locals(old=dict, key=tuple, found=tuple)
    cpdef set(self, Op op, str name, value)

    @cython.locals(old=dict, key=tuple, found=tuple)
    cpdef remove(self, Op op, str name)


cdef class SharedOutcomes:
    cdef public dict _found
    cdef public list _kept

    cpdef bint apply(self, Op op) except -1
    cpdef note(self, dict before, Op op)
