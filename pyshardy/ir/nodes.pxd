# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.source cimport Source


cdef inline Py_ssize_t id(object thing) noexcept:  # as the builtin, without a call
    return <Py_ssize_t> <void*> thing


cdef class ValueType:
    cdef public object mlir
    cdef public object shape
    cdef public str element
    cdef public bint is_shaped
    cdef public bint is_ranked_tensor
    cdef public bint is_static


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
