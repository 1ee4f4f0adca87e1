# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op


@cython.locals(op=Op)
cpdef constant_of(Value value)
