# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode.ops cimport OpReader
from pyshardy.ir.blocks cimport Block, Region, Value
from pyshardy.ir.op cimport Op
from pyshardy.ir.value_type cimport ValueType
from pyshardy.ir.source cimport SourceKind, Source

cdef int HAS_OPERANDS, HAS_REGIONS, HAS_RESULTS, HAS_SUCCESSORS, HAS_USE_ORDERS
cdef tuple _NO_USES


cdef class _Reader:
    cdef public OpReader reader
    cdef public list names
    cdef public list is_registered
    cdef public Source source
    cdef public object mlir
    cdef public object table
    cdef public Py_ssize_t number
    cdef public list scope
    cdef public Py_ssize_t next_value
    cdef public dict kinds
    cdef public list latest
    cdef public dict types
    cdef public cython.uint[::1] locations
    cdef public int[::1] blocks
    cdef public int[::1] places
    cdef public dict arg_places
    cdef public list use_orders

    @cython.locals(reader=OpReader, names=list, latest=list, source=Source, kinds=list, locations=cython.uint[::1], homes=int[::1], places=int[::1], last=Op, place=Py_ssize_t, mask=int, name=Py_ssize_t, number=Py_ssize_t, kind=SourceKind, op=Op)
    cpdef read_ops(self, Block block, Py_ssize_t home, Py_ssize_t count, list blocks)

    cdef read_inside(self, Op op, Py_ssize_t home, int mask)

    @cython.locals(count=Py_ssize_t, index=Py_ssize_t)
    cpdef tuple read_results(self, Op op, Py_ssize_t home, Py_ssize_t place)

    @cython.locals(types=dict, number=Py_ssize_t, type=ValueType, value=Value)
    cdef Value read_result(self, Op op, Py_ssize_t home, Py_ssize_t place, Py_ssize_t index)

    @cython.locals(count=Py_ssize_t, index=Py_ssize_t, first=Value)
    cpdef tuple read_operands(self, Op op)

    @cython.locals(number=Py_ssize_t, known=Value, value=Value)
    cdef Value read_operand(self, Op op, Py_ssize_t index)

    @cython.locals(number=Py_ssize_t, value=Value, early=Value, scope=list)
    cpdef define(self, values)
