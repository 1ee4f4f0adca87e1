# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op
from pyshardy.transforms.reshards.kinds cimport kind_of
from pyshardy.transforms.local.localizer cimport Localizer


cpdef check_runs_locally(Op op, Localizer local)
cpdef _check(Op op, Localizer local)


@cython.locals(values=tuple, shapes=tuple, shardings=tuple, meshes=dict)
cpdef _tensors(Op op, Localizer local)
