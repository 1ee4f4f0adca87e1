# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.shared_attributes cimport SharedChanges

cdef str RULE, SHARDING
cdef frozenset HOLD_OTHERWISE


@cython.locals(changes=SharedChanges, number=Py_ssize_t, op=Op)
cpdef _store_rules(list ops, int[::1] kind_of, list rules)


@cython.locals(value=Value, op=Op, alone=dict, changes=SharedChanges, number=Py_ssize_t, listed=tuple)
cpdef _store(list places, tuple shardings, tuple before)
