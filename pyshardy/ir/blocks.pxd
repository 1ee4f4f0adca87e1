# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.ir.value_type cimport ValueType


cpdef flat_uses(uses)


cdef class Value:
    cdef public ValueType type
    cdef public object owner
    cdef public int index
    cdef public object flat_uses
    cdef public object _location

    @cython.locals(few=tuple)
    cpdef add_use(self, Op op, Py_ssize_t index)

    @cython.locals(few=tuple, place=Py_ssize_t)
    cpdef drop_use(self, Op op, Py_ssize_t index)
    cpdef bint has_one_use(self) except -1
    cpdef set_type(self, ValueType type)

    @cython.locals(moved=list, op=Op)
    cpdef replace_uses(self, Value new, only=*)

    @cython.locals(few=tuple, place=Py_ssize_t, op=Op, index=Py_ssize_t)
    cdef _move_all_uses(self, Value new)


cdef class Block:
    cdef public Region region
    cdef public list args
    cdef public Op first
    cdef public Op last
    cdef public bint _ordered

    cpdef Op append(self, Op op)
    cpdef Op prepend(self, Op op)

    @cython.locals(previous=Op, op=Op, order=int)
    cpdef reorder(self, ops)
    cpdef _link(self, Op op, Op before, Op after)

    @cython.locals(op=Op)
    cpdef _number(self)


cdef class Region:
    cdef public Op op
    cdef public list blocks
    cdef public dict op_index

    @cython.locals(region=Region, block=Block)
    cpdef forget(self, Op op)


@cython.locals(region=Region, block=Block, inner=Op)
cdef _forget_in_index(dict op_index, Op op)
