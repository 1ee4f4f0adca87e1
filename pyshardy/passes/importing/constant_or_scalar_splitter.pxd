# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op

cdef frozenset _SOURCES
cdef str _BROADCAST, _GROUP


cdef class _Splitter:
    cdef public object symbols
    cdef public object specs
    cdef public bint has_groups
    cdef public set other_functions
    cdef public set other_computations

    @cython.locals(split=dict, is_marked=bint, op=Op, name=str, operands=tuple, is_touched=bint, is_constant=bint, value=Value, preserving=bint, index=Py_ssize_t)
    cpdef split_inside(self, Op holder, Op function)

    cpdef bint is_preserving(self, Op op) except -1

    @cython.locals(op=Op, operand=Value, copy=Op, user=Op, index=Py_ssize_t)
    cpdef Value copy(self, Value value, dict copies, bint takes_last)


cdef _use_anew(Op op, Py_ssize_t index, Value value)


@cython.locals(values=tuple, value=Value)
cdef bint _is_static(Op op) except -1


@cython.locals(result=Value, user=Op)
cdef bint _is_used(Op op) except -1
