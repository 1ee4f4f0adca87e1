# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op


@cython.locals(name=str, kind=list, value=Value)
cpdef kind_of(Op op, dict types=*, shardings_of=*)
