# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op, id

cdef dict _KEY_FIELDS, USER_RULES
cdef tuple _NO_FIELDS


cdef class OpSpecReader:
    cdef public dict _decoded

    @cython.locals(name=str, operands=tuple, results=tuple, fields=tuple, first=Value, second=Value, result=Value)
    cpdef shape_key(self, Op op, rule)
