# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.functions cimport result_sharding
from pyshardy.ir.nodes cimport Block, Op, Region, Value
from pyshardy.ir.numbering cimport Numbering
from pyshardy.ir.opspec cimport OpSpecReader
from pyshardy.ir.purity cimport is_pure

cdef int NO_VALUE, _WITH_SHARDING
cdef str EDGE, RULE, SHARDING
cdef frozenset EDGES, TERMINATORS


@cython.locals(numbers=int[::1], number=Py_ssize_t)
cpdef _counting(Py_ssize_t count)


cdef bint _is_alike(Op op, Op other) except -1


@cython.locals(place=Py_ssize_t, value=Value, other=Value)
cdef bint _have_same_types(tuple values, tuple others) except -1


cdef class _Builder:
    cdef public Op root
    cdef public OpSpecReader specs
    cdef public bint conservative
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
    cdef public dict numbers
    cdef public dict kinds
    cdef public list known
    cdef public set known_names
    cdef public list rules
    cdef public list latest
    cdef public object kind_of
    cdef public object parents
    cdef public object owners
    cdef public dict views

    @cython.locals(op_numbers=dict, users=int[::1], starts=int[::1], value=Value, uses=object, few=tuple, op=Op, number=Py_ssize_t, limit=Py_ssize_t, place=Py_ssize_t, index=Py_ssize_t)
    cpdef users_of_values(self)

    @cython.locals(rules=list, numbers=dict, op_numbers=dict, value_numbers=dict, known_names=set, latest=list, plain=bytearray, likeness=int, ahead=Py_ssize_t, ops=list, has_sharding=bint, kind_of=int[::1], parents=int[::1], owners=int[::1], holders=int[::1], holding=list, edges=dict, operands=int[::1], results=int[::1], tensors=int[::1], operand_starts=int[::1], result_starts=int[::1], tensor_starts=int[::1], used=Py_ssize_t, defined=Py_ssize_t, joined=Py_ssize_t, parent=Py_ssize_t, number=Py_ssize_t, mark=Py_ssize_t, place=Py_ssize_t, kind=Py_ssize_t, op=Op, value=Value, block=Block, name=str, has_tensors=bint, is_edge=bint)
    cpdef tuple steps(self)

    @cython.locals(op=Op, value=Value, region=Region, block=Block, found=list, holders=int[::1], numbers=dict, number=Py_ssize_t)
    cpdef list shardings(self)

    @cython.locals(found=list, shapes=list, function=Op, value=Value, index=Py_ssize_t, first=Py_ssize_t, number=Py_ssize_t, owner=Py_ssize_t, is_main=bint)
    cpdef tuple add_function_results(self, list places, users, dict notified, list shardings)

    @cython.locals(holders=int[::1], values=list, found=dict, number=Py_ssize_t)
    cpdef dict notified(self)
