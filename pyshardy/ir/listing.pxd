# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Region, Value


@cython.locals(region=Region, block=Block, inner=Op)
cdef _add_ops(Op op, list found, bint post_order, frozenset closed)


cpdef list ops_named(Op op, names, bint post_order=*)


@cython.locals(is_listed=bint, region=Region, block=Block, inner=Op)
cdef _add_named(Op op, list found, bint post_order, frozenset names)


cpdef list ops_with(Op op, attribute, names=*)


@cython.locals(region=Region, block=Block, inner=Op)
cdef _add_with(Op op, list found, str attribute, frozenset names)


@cython.locals(op=Op, result=Value)
cpdef set result_types(list ops)


cpdef tuple attribute_values(Op op, attribute, others)


@cython.locals(region=Region, block=Block, inner=Op)
cdef _add_values(Op op, dict values, str attribute, list listed, frozenset others)


cdef _add_value(Op op, dict values, str attribute, list listed, frozenset others)


@cython.locals(counts=dict, listed=list, names=frozenset, op=Op, name=str, shared=dict, attrs=dict, found=tuple)
cpdef tuple count_attributes(list ops, others, str left_out)
