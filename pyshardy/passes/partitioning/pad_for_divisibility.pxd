# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.transforms.padding.padder cimport Padder


cpdef _pad(Op op, Padder padder)
