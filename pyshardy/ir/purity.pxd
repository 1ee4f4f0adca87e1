# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region
from pyshardy.ir.op cimport Op


cpdef bint is_pure(Op op, frozenset also=*) except -1
cpdef bint is_dead(Op op, frozenset also=*) except -1


@cython.locals(region=Region, block=Block, inner=Op)
cdef bint _has_no_effect(Op op, frozenset also) except -1


@cython.locals(name=str)
cdef bint _is_pure_alone(Op op) except -1
