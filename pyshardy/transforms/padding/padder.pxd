# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.value_type cimport ValueType


cdef class Padder:
    cdef public object context
    cdef public object meshes
    cdef public dict originals
    cdef public set unpadded
    cdef public set functions
    cdef public dict paddings
    cdef public dict _padded
    cdef public dict _needs

    @cython.locals(key=tuple, results=tuple)
    cpdef bint concerns(self, Op op) except -1

    @cython.locals(value=Value, type=ValueType)
    cpdef bint _is_to_be_padded(self, values, shardings) except -1
