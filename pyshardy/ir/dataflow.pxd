# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op


cpdef bint is_data_flow_op(Op op) except -1
cpdef Value owner_of(Value target)


@cython.locals(user=Op)
cpdef Op edge_of(Value owner)


@cython.locals(parent=Op)
cpdef Op edge_of_source(Op op, Py_ssize_t index)


@cython.locals(op=Op)
cpdef Op edge_held(Value value)
