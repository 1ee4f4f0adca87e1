# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode cimport encode_number, number_at
from pyshardy.ir.nodes cimport Block, Op, Region, Value, ValueType, id
from pyshardy.ir.source cimport Kind, Source

cdef int HAS_ATTRS, HAS_OPERANDS, HAS_PROPERTIES, HAS_REGIONS, HAS_RESULTS, HAS_SUCCESSORS


cdef class _Emitter:
    cdef public Source source
    cdef public object table
    cdef public object tables
    cdef public bytearray out
    cdef public list scope
    cdef public dict types
    cdef public dict locations
    cdef public dict coded
    cdef public dict shared
    cdef public object unknown
    cdef public dict dictionaries
    cdef public dict values
    cdef public dict args
    cdef public dict plain

    @cython.locals(out=bytearray, scope=list, types=dict, kinds=list, op=Op, results=tuple, operands=tuple, number=Py_ssize_t, limit=Py_ssize_t, kind=Kind, mask=int, value=Value)
    cpdef Py_ssize_t emit_ops(self, Block block, Py_ssize_t defined) except -1

    @cython.locals(name=str, attrs=dict, found=Kind)
    cpdef Kind kind_of(self, Op op)
    cpdef Kind new_kind(self, Op op)
    cpdef Py_ssize_t location(self, Op op) except -1

    @cython.locals(block=Block, op=Op, scope=list, values=Py_ssize_t, count=Py_ssize_t, start=Py_ssize_t, defined=Py_ssize_t)
    cpdef emit_region(self, Region region)


@cython.locals(found=list)
cdef tuple _content(str name, dict attrs)
