# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Op
from pyshardy.ir.sharing cimport SharedChanges, SharedOutcomes


@cython.locals(inner=Op, changes=SharedChanges, outcomes=SharedOutcomes, before=dict)
cpdef drop_sharding_rules(Op op)
