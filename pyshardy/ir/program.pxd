# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.functions cimport result_sharding
from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.numbering cimport Numbering
from pyshardy.ir.opspec cimport OpSpecReader
from pyshardy.ir.purity cimport is_pure

cdef int NO_VALUE, _COMPARABLE, _EDGE, _SHARDED
cdef str RULE, SHARDING
cdef frozenset EDGES


@cython.locals(numbers=int[::1], number=Py_ssize_t)
cpdef _counting(Py_ssize_t count)


cdef bint _is_alike(Op op, Op other) except -1


@cython.locals(place=Py_ssize_t, value=Value, other=Value)
cdef bint _have_same_types(tuple values, tuple others) except -1


cdef class _Builder:
    cdef public Op root
    cdef public OpSpecReader specs
    cdef public object callers
    cdef public Numbering numbering
    cdef public list ops
    cdef public dict op_numbers
    cdef public dict value_numbers
    cdef public list shapes
    cdef public list unknown
    cdef public bint has_rules
    cdef public list values
    cdef public object holders
    cdef public list elsewhere
    cdef public object notifications
    cdef public object kinds
    cdef public bytearray forms
    cdef public dict edges
    cdef public list latest
    cdef public object kind_of
    cdef public object parents
    cdef public object owners
    cdef public dict views

    @cython.locals(op_numbers=dict, users=int[::1], starts=int[::1], value=Value, uses=object, few=tuple, op=Op, number=Py_ssize_t, limit=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t)
    cpdef users_of_values(self)

    @cython.locals(kind_of=int[::1], parents=int[::1], forms=bytearray, ops=list, rules=list, known_names=set, latest=list, op_numbers=dict, holding=list, unknown=list, block=Block, parent=Py_ssize_t, ahead=Py_ssize_t, number=Py_ssize_t, form=int, kind=Py_ssize_t, op=Op)
    cpdef find_kinds(self)

    @cython.locals(form=int)
    cdef Py_ssize_t look_up(self, Py_ssize_t number, Op op) except -1

    @cython.locals(value_numbers=dict, owners=int[::1], holders=int[::1], rules=list, kind_of=int[::1], forms=bytearray, edges=dict, operands=int[::1], results=int[::1], tensors=int[::1], operand_starts=int[::1], result_starts=int[::1], tensor_starts=int[::1], used=Py_ssize_t, defined=Py_ssize_t, joined=Py_ssize_t, number=Py_ssize_t, mark=Py_ssize_t, op=Op, value=Value, is_edge=bint, has_tensors=bint)
    cpdef tuple fill_lists(self)

    @cython.locals(op=Op, value=Value, region=Region, block=Block, found=list, holders=int[::1], numbers=dict, number=Py_ssize_t)
    cpdef list shardings(self)

    @cython.locals(found=list, shapes=list, function=Op, value=Value, index=Py_ssize_t, first=Py_ssize_t, number=Py_ssize_t, owner=Py_ssize_t, is_main=bint)
    cpdef tuple add_function_results(self, list places, users, dict notified, list shardings)

    @cython.locals(holders=int[::1], values=list, found=dict, number=Py_ssize_t)
    cpdef dict notified(self)
