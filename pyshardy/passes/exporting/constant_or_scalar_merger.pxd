# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op, id
from pyshardy.ir.value_type cimport ValueType


@cython.locals(originals=_Originals, op=Op, scalar=Value, result=Value, earlier=Op)
cpdef merge(Op function)


cdef class _Originals:
    cdef public dict _seen
    cdef public list _kept
    cdef public dict _numbers
    cdef public dict _first

    @cython.locals(by_identity=tuple, found=Op, numbers=dict)
    cpdef Op of(self, Op op, region, ValueType result_type, Value scalar)
