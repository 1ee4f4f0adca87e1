# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.value_type cimport ValueType

cdef str RULE, _MESH
cdef frozenset _UNLIKE_MOST


cdef class Numbering:
    cdef public list ops
    cdef public list values
    cdef public dict op_numbers
    cdef public dict value_numbers
    cdef public list shapes
    cdef public Py_ssize_t uses
    cdef public list calls
    cdef public list edges
    cdef public list grouped
    cdef public list args
    cdef public list undecided
    cdef public list listed
    cdef public list crossing
    cdef public list holding
    cdef public bint has_rules

    @cython.locals(ops=list, values=list, op_numbers=dict, value_numbers=dict, shapes=list, block=Block, op=Op, results=tuple, value=Value, type=ValueType, inner=Region, is_unlike=bint)
    cpdef _number_region(self, Region region)
