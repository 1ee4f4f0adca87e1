# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op


@cython.locals(first=Value, second=Value, is_first=bint, is_second=bint)
cpdef binary(Op op, to)


@cython.locals(value=Value)
cpdef fold(Op op, to)
