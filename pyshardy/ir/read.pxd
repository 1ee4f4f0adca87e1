# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode cimport number_at
from pyshardy.ir.nodes cimport Block, Op, Region, Value, ValueType
from pyshardy.ir.source cimport Kind, Source

cdef int FEW, HAS_ATTRS, HAS_OPERANDS, HAS_PROPERTIES, HAS_REGIONS, HAS_RESULTS, HAS_SUCCESSORS, HAS_USE_ORDERS
cdef tuple _NO_USES


cdef class _Reader:
    cdef public bytes data
    cdef public list names
    cdef public list is_registered
    cdef public Source source
    cdef public object mlir
    cdef public object table
    cdef public Py_ssize_t position
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

    @cython.locals(data=bytes, names=list, scope=list, types=dict, known=dict, latest=list, kinds=list, position=Py_ssize_t, last=Op, place=Py_ssize_t, name=Py_ssize_t, mask=int, first=Py_ssize_t, number=Py_ssize_t, attributes=Py_ssize_t, properties=Py_ssize_t, kind=Kind, op=Op, results=tuple, operands=tuple, many=list, locations=cython.uint[::1], homes=int[::1], places=int[::1], uses=Py_ssize_t, index=Py_ssize_t, type=ValueType, value=Value, first_value=Value, known_value=Value)
    cpdef read_ops(self, Block block, Py_ssize_t home, Py_ssize_t count, list blocks)
    cpdef Py_ssize_t next_number(self) except -1

    @cython.locals(number=Py_ssize_t, value=Value, early=Value, scope=list)
    cpdef define(self, values)

    @cython.locals(count=Py_ssize_t, next_value=Py_ssize_t, number=Py_ssize_t, region=Region, scope=list)
    cpdef read_regions(self, Op op, Py_ssize_t home)

    @cython.locals(block_count=Py_ssize_t, first=Py_ssize_t, end=Py_ssize_t, index=Py_ssize_t, count=Py_ssize_t, inside=Py_ssize_t, block=Block, blocks=list)
    cpdef read_region(self, Region region, Py_ssize_t home, Py_ssize_t number)

    @cython.locals(index=Py_ssize_t, type_and_flag=Py_ssize_t, location=Py_ssize_t, type=ValueType, args=list, value=Value)
    cpdef read_args(self, Block block, Py_ssize_t home)
