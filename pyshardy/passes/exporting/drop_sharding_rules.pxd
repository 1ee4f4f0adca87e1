# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Op


@cython.locals(inner=Op, attrs=dict)
cpdef drop_sharding_rules(Op op)
