# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.core.axis_lists cimport is_strict_prefix
from pyshardy.propagation.compatible cimport Cutter, compatible_axes, cut_by_other_factors, cut_within_factor
from pyshardy.propagation.projection cimport FactorState, TensorState


@cython.locals(factor=Py_ssize_t, tensor=Py_ssize_t, candidate=tuple, axes=tuple, state=TensorState, found=FactorState, changed=list)
cpdef list propagate_basic(rule, list states, directions, mesh, bint is_conservative)


@cython.locals(state=TensorState, found=FactorState)
cdef bint _may_grow(list states, factor, tuple candidate) except -1
