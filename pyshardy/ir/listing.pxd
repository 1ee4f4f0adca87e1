# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Region


@cython.locals(is_listed=bint, region=Region, block=Block, inner=Op)
cdef _add_ops(Op op, list found, bint post_order, frozenset closed, frozenset names, str attribute)


cdef bint _is_wanted(Op op, frozenset names, str attribute) except -1


cpdef list ops_named(Op op, names, bint post_order=*)


cpdef list ops_with(Op op, attribute, names=*)


@cython.locals(inner=Op, values=dict, listed=list, names=frozenset)
cpdef tuple attribute_values(Op op, attribute, others)


@cython.locals(counts=dict, listed=list, names=frozenset, op=Op, name=str, shared=dict, alike=list)
cpdef tuple count_attributes(list ops, others, str left_out)
