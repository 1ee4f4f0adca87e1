# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.transforms.reshards.kinds cimport kind_of


cdef class _Inserter:
    cdef public Op function
    cdef public object context
    cdef public dict meshes
    cdef public bint is_full
    cdef public bint mark
    cdef public bint has_unreduced
    cdef public bint has_single_device
    cdef public object namer
    cdef public dict plans
    cdef public list named
    cdef public object shardings_of
    cdef public set fine
    cdef public object symbols

    @cython.locals(names_all=bint, changes=bint, op=Op)
    cpdef run(self)

    @cython.locals(op=Op)
    cpdef list _ops(self)
    cpdef bint _is_fine(self, Op op) except -1
