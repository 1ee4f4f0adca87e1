# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.value_type cimport ValueType


cdef class Localizer:
    cdef public object context
    cdef public object attrs
    cdef public object meshes
    cdef public object options
    cdef public object symbols
    cdef public object channels
    cdef public set complete
    cdef public set checked
    cdef public dict global_types
    cdef public dict merged
    cdef public dict groups
    cdef public dict _values
    cdef public dict _kept
    cdef public dict _local_types
    cdef public list _replaced
    cdef public list _trimmed

    cpdef ValueType global_type(self, Value value)

    @cython.locals(key=tuple, found=object)
    cpdef ValueType local_type(self, Op op, ValueType type, sharding)
    cpdef Value value(self, Value value)
    cpdef localize(self, Op op, Value value)
    cpdef _set_type(self, Value value, ValueType type)

    @cython.locals(result=Value, region=Region, block=Block, arg=Value)
    cpdef keep(self, Op op)

    @cython.locals(known=dict, index=Py_ssize_t, value=Value, new=object)
    cpdef _use_local_operands(self, Op op)

    @cython.locals(result=Value)
    cpdef keep_for_kind(self, Op op, kind)

    @cython.locals(types=tuple, index=Py_ssize_t, result=Value)
    cpdef bint keep_like_others(self, Op op, kind) except -1
