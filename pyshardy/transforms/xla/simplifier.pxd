# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op


cdef class Simplifier:
    cdef public Op function
    cdef public object attrs
    cdef public dict table
    cdef public dict spread
    cdef public dict splats
    cdef public Block _entry
    cdef public dict _constants
    cdef public int _changes
    cdef public bint _is_waiting
    cdef public bint _is_late
    cdef public bint _has_late

    @cython.locals(op=Op, following=Op)
    cpdef _sweep(self, Block block)

    @cython.locals(region=Region, block=Block, result=Value, value=Value)
    cpdef visit(self, Op op)

    @cython.locals(first=Op)
    cpdef _keep(self, Op op)


@cython.locals(op=Op, before=Op)
cpdef remove_dead(Block block)


cpdef bint is_dropped(Op op) except -1
