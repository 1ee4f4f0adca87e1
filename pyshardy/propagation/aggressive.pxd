# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.propagation.compatible cimport Cutter
from pyshardy.propagation.projection cimport FactorState, TensorState


@cython.locals(operand_count=Py_ssize_t, candidates=dict, changed=list, state=TensorState, found=FactorState, tensor=Py_ssize_t)
cpdef list propagate_aggressive(rule, list states, directions, mesh, bint is_conservative, bint is_elementwise)


@cython.locals(within=Cutter, across=Cutter)
cdef _cut_for_tensor(tuple candidate, factor, FactorState found, size, TensorState state, mesh, bint is_conservative)


@cython.locals(state=TensorState, found=FactorState)
cdef _limit_to_results(axes, factor, list results)
