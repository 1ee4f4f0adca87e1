# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.blocks cimport Value
from pyshardy.ir.op cimport Op


cdef class Revisits:
    cdef public object _callers
    cdef public dict _numbers
    cdef public set _crossed

    @cython.locals(found=list, op=Op)
    cpdef tuple of(self, Value holder)

    @cython.locals(few=tuple, place=Py_ssize_t)
    cpdef _add_users(self, Value value, list found)
    cpdef _add_user(self, Op user, Py_ssize_t index, list found)

    @cython.locals(edge=Op, parent=Op)
    cpdef _add_special(self, Op user, Py_ssize_t index, list found)
