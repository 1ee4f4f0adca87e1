# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Value, ValueType


@cython.locals(first=dict, numbers=_Numbers, op=Op, scalar=Value, type=ValueType, result=Value, key=tuple, earlier=Op)
cpdef merge(Op function)


cdef class _Numbers:
    cdef public dict _seen
    cdef public dict _attrs
    cdef public dict _sets

    @cython.locals(values=list, key=tuple, found=tuple)
    cpdef of(self, dict attrs)
