# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op

cdef int _UNSEEN, _SEEN


@cython.locals(op=Op, region=Region, count=Py_ssize_t)
cdef _order(Block block, bint are_dead_roots, bint are_reshaped=*)


@cython.locals(results=tuple)
cdef bint _has_dead_result(Op op) except -1


@cython.locals(stack=list, op=Op, other=Op, value=Value)
cdef _visit(Op root, Block block, list found)


@cython.locals(op=Op, before=Op, region=Region, inner=Block, result=Value, value=Value)
cdef _forward_results(Block block)


@cython.locals(op=Op, before=Op)
cdef _clean(Block block)


@cython.locals(region=Region, block=Block, arg=Value, op=Op, result=Value, value=Value, index=Py_ssize_t)
cpdef link_uses(Op holder)
