# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.nodes cimport Block, Op, Region, id
from pyshardy.ir.source cimport Kind, Source


cdef class _Writer:
    cdef public Source source
    cdef public object table
    cdef public list changes
    cdef public Py_ssize_t number
    cdef public dict known

    @cython.locals(changes=list, kinds=list, region=Region, block=Block, op=Op, kind=Kind, number=Py_ssize_t)
    cpdef collect(self, Op root)

    @cython.locals(new=dict, known=tuple)
    cpdef tuple change(self, Op op, dict old)

    @cython.locals(change=tuple)
    cpdef visit(self, target)
