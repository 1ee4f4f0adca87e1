# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.propagation.aggressive cimport propagate_aggressive
from pyshardy.propagation.basic cimport propagate_basic
from pyshardy.propagation.projection cimport TensorState, project, unproject


@cython.locals(sizes=tuple, mapping=tuple, tensor=Py_ssize_t, found=list)
cdef list _project_all(rule, shardings, mesh)
cdef _mesh_of_all(shardings, meshes)
cdef tuple _run(step, shardings, mesh)
