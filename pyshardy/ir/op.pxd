# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.source cimport Source


cdef inline Py_ssize_t id(object thing) noexcept:  # as the builtin, without a call
    return <Py_ssize_t> <void*> thing


cdef class Op:
    cdef public str name
    cdef public tuple operands
    cdef public tuple results
    cdef public object attrs
    cdef public tuple regions
    cdef public tuple successors
    cdef public Source source
    cdef public int number
    cdef public object _location
    cdef public Block block
    cdef public Op prev
    cdef public Op next
    cdef public int order

    @cython.locals(result=Value)
    cpdef bint has_uses(self) except -1
    cpdef bint is_before(self, Op other) except -1

    @cython.locals(region=Region)
    cpdef rename(self, str name)

    @cython.locals(old=Value)
    cpdef set_operand(self, Py_ssize_t index, Value value)
    cpdef add_operand(self, Value value)

    @cython.locals(operands=tuple)
    cpdef _put_operand(self, Py_ssize_t index, Value value)
    cpdef Op insert_before(self, Op anchor)
    cpdef Op insert_after(self, Op anchor)
    cpdef Op detach(self)
    cpdef erase(self)

    @cython.locals(value=Value, region=Region, block=Block, op=Op, index=Py_ssize_t)
    cpdef drop_operands(self)

    @cython.locals(copy=Op, result=Value)
    cpdef Op clone(self, dict mapping=*)
