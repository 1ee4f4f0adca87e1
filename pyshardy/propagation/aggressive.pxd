# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.core.axis_lists cimport is_prefix, is_strict_prefix
from pyshardy.propagation.compatible cimport Cutter, compatible_axes, cut_by_other_factors, cut_within_factor
from pyshardy.propagation.projection cimport FactorState, TensorState


@cython.locals(operand_count=Py_ssize_t, candidates=dict, changed=list, state=TensorState, found=FactorState, tensor=Py_ssize_t)
cpdef list propagate_aggressive(rule, list states, directions, mesh, bint is_conservative, bint is_elementwise)


@cython.locals(tensor_sizes=list, state=TensorState, order=list)
cdef list _factor_order(dict candidates, list states, tuple sizes, mesh, bint is_elementwise)


@cython.locals(best=tuple, state=TensorState, found=FactorState, tensor=Py_ssize_t)
cdef tuple _source_of(factor, tuple axes, list states, list tensor_sizes)


@cython.locals(within=Cutter, across=Cutter)
cdef _cut_for_tensor(tuple candidate, factor, FactorState found, size, TensorState state, mesh, bint is_conservative)


@cython.locals(state=TensorState, found=FactorState)
cdef _limit_to_results(axes, factor, list results)
