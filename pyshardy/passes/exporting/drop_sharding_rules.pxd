# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Op
from pyshardy.ir.sharing cimport SharedChanges


@cython.locals(inner=Op, changes=SharedChanges)
cpdef drop_sharding_rules(Op op)
