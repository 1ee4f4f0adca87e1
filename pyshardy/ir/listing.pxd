# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Region, Value


@cython.locals(region=Region, block=Block, inner=Op)
cdef _add_ops(Op op, list found, bint post_order, closed, names)


cpdef list ops_named(Op op, names, post_order=*)


@cython.locals(inner=Op)
cpdef list ops_with(Op op, attribute, names=*)


@cython.locals(op=Op, result=Value)
cpdef set result_types(list ops)


@cython.locals(inner=Op, found=dict)
cpdef dict attribute_values(Op op, attribute, without=*)
