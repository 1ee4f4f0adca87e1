# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op, id


cdef class SharedChanges:
    cdef public dict _made

    @cython.locals(made=dict, found=tuple)
    cpdef set(self, Op op, str name, value)


cdef class SharedOutcomes:
    cdef public object _change
    cdef public dict _found

    @cython.locals(found=tuple)
    cpdef apply(self, Op op)
