# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region
from pyshardy.ir.op cimport Op


@cython.locals(is_listed=bint, known=frozenset, region=Region)
cdef _add_ops(Op op, list found, bint post_order, frozenset closed, frozenset names, str attribute)


@cython.locals(block=Block, inner=Op)
cdef _add_inside(Region region, list found, bint post_order, frozenset closed, frozenset names, str attribute)


@cython.locals(known=dict, of_one=list)
cdef bint _add_known(Region region, list found, bint post_order, frozenset names) except -1


@cython.locals(known=dict, count=Py_ssize_t, op=Op, ops=list, made=dict)
cdef _add_again(Region region, list found, bint post_order, frozenset names)


@cython.locals(ops=list, found=dict, op=Op, known=list)
cdef dict _by_name(Region region)


@cython.locals(op=Op)
cdef bint _any_holds(list ops) except -1


cdef bint _is_wanted(Op op, frozenset names, str attribute) except -1


@cython.locals(found=list)
cpdef list ops_named(Op op, names, bint post_order=*)


cpdef list ops_with(Op op, attribute, names=*)


@cython.locals(inner=Op, values=dict, listed=list, names=frozenset)
cpdef tuple attribute_values(Op op, attribute, others)


@cython.locals(counts=dict, listed=list, names=frozenset, op=Op, name=str, shared=dict, alike=list)
cpdef tuple count_attributes(list ops, others, str left_out)
