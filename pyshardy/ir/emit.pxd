# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode.ops cimport OpWriter
from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op, id
from pyshardy.ir.value_type cimport ValueType
from pyshardy.ir.source cimport SourceKind, Source

cdef int HAS_OPERANDS, HAS_REGIONS, HAS_RESULTS, HAS_SUCCESSORS, ABSENT


cdef class _Emitter:
    cdef public Source source
    cdef public object table
    cdef public object tables
    cdef public OpWriter writer
    cdef public dict numbers
    cdef public Py_ssize_t size
    cdef public dict types
    cdef public dict locations
    cdef public dict coded
    cdef public dict shared
    cdef public object unknown
    cdef public dict dictionaries
    cdef public dict values
    cdef public dict plain

    @cython.locals(writer=OpWriter, numbers=dict, source=Source, kinds=list, op=Op, results=tuple, operands=tuple, number=Py_ssize_t, location=Py_ssize_t, kind=SourceKind, mask=int, value=Value)
    cpdef Py_ssize_t emit_ops(self, Block block, Py_ssize_t defined) except -1

    @cython.locals(writer=OpWriter, numbers=dict, types=dict, results=tuple, operands=tuple, value=Value)
    cdef emit_values(self, Op op)

    @cython.locals(writer=OpWriter, numbers=dict, block=Block, op=Op, values=Py_ssize_t, count=Py_ssize_t, start=Py_ssize_t, defined=Py_ssize_t)
    cpdef emit_region(self, Region region)
    cpdef Py_ssize_t location(self, Op op) except -1

    @cython.locals(name=str, shared=dict, found=SourceKind)
    cpdef SourceKind kind_of(self, Op op)
    cpdef SourceKind new_kind(self, Op op)


@cython.locals(found=list)
cdef tuple _content(str name, attrs)
