# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region
from pyshardy.ir.op cimport Op

cdef str CALL


@cython.locals(found=list, regions=list, region=Region, block=Block, op=Op)
cdef list _calls_in(Op top)
