# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.propagation.projection cimport FactorState, TensorState, project


cpdef project_tensor(rule, tuple mapping, sharding, mesh)


@cython.locals(changed=bint, factor=FactorState)
cpdef bint _assign(TensorState state, common) except -1
