# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Region, Value, ValueType
from pyshardy.ir.opspec cimport OpSpecReader


@cython.locals(value=Value, op=Op, alone=dict)
cpdef _store(list places, shardings, before)


cdef class _Builder:
    cdef public Op root
    cdef public OpSpecReader specs
    cdef public bint conservative
    cdef public object callers
    cdef public list ops
    cdef public list values
    cdef public list owners
    cdef public list results
    cdef public list undecided
    cdef public list listed
    cdef public set crossing
    cdef public list holders
    cdef public object index
    cdef public object notifications
    cdef public dict numbers
    cdef public dict kinds
    cdef public list known
    cdef public list rules
    cdef public list kind_of
    cdef public dict views

    @cython.locals(values=list, owners=list, given=list, op=Op, results=list, value=Value)
    cpdef _give_numbers(self)

    @cython.locals(op=Op, block=Block)
    cpdef list parents(self)

    @cython.locals(holders=list, rules=list, numbers=dict, tensors=list, kind_of=list, op=Op, used=tuple, defined=tuple, name=str, attrs=dict, found=tuple, elsewhere=set)
    cpdef steps(self, list operands)

    @cython.locals(op=Op, value=Value, region=Region, block=Block, found=list)
    cpdef list shardings(self)

    @cython.locals(op=Op, value=Value, found=list)
    cpdef list operand_numbers(self)

    @cython.locals(op=Op, value=Value, uses=object, found=list)
    cpdef list users(self)

    @cython.locals(type=ValueType, value=Value, found=list)
    cpdef list shapes(self)
