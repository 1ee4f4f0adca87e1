# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.ir.shared_attributes cimport SharedOutcomes


@cython.locals(inner=Op, outcomes=SharedOutcomes)
cpdef drop_sharding_rules(Op op)
