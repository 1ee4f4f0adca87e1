# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op


cpdef arg_attrs(Op function, Py_ssize_t index)
cpdef result_attrs(Op function, Py_ssize_t index)
cpdef _entry(Op function, str kind, Py_ssize_t index)
cpdef arg_sharding(Op function, Py_ssize_t index)
cpdef result_sharding(Op function, Py_ssize_t index)
