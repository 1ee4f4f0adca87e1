# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.dataflow cimport edge_held
from pyshardy.ir.functions cimport arg_sharding
from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.shared_attributes cimport SharedChanges, SharedOutcomes

cdef frozenset _WITH_OWN_ATTRIBUTES


@cython.locals(op=Op)
cpdef get_sharding(Value value)


@cython.locals(edge=Op, parent=Op)
cpdef holder_of(Value value)


@cython.locals(found=list, value=Value, op=Op)
cpdef list get_shardings(values)


cdef class _Changer:
    cdef public object _change
    cdef public dict _changed
    cdef public SharedChanges _changes
    cdef public SharedOutcomes _outcomes

    @cython.locals(op=Op)
    cpdef apply_to_all(self, list ops)
    cpdef apply_to(self, Op op)
    cpdef _of_most(self, attrs)
    cpdef _of(self, value)
