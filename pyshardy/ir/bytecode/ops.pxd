# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode.numbers cimport NumberReader, NumberWriter

cdef int _ATTRS, _PROPERTIES, _NONE


cdef class OpReader(NumberReader):
    cdef public Py_ssize_t name
    cdef public int mask
    cdef public Py_ssize_t location
    cdef public Py_ssize_t attributes
    cdef public Py_ssize_t properties

    @cython.locals(mask=int)
    cpdef int read_op(self) except -1


cdef class OpWriter(NumberWriter):
    cpdef write_op(self, Py_ssize_t name, int mask, Py_ssize_t location, Py_ssize_t attributes, Py_ssize_t properties)
