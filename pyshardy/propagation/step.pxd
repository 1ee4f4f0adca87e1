# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.propagation.projection cimport TensorState


cdef list _project_all(rule, shardings, mesh)
cdef tuple _run(step, shardings, mesh)
