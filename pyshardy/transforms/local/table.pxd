# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.transforms.reshards.kinds cimport kind_of
from pyshardy.transforms.local.localizer cimport Localizer


@cython.locals(op=Op)
cpdef localize_all(list ops, Localizer local)

cpdef localize_any(Op op, Localizer local)
