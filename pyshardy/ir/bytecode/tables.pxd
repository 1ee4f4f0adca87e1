# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.bytecode.numbers cimport NumberReader


cdef class BytecodeTables:
    cdef public object code
    cdef public Py_ssize_t attr_count
    cdef public Py_ssize_t type_count
    cdef public Py_ssize_t first_offset
    cdef public Py_ssize_t string_count
    cdef public Py_ssize_t first_length
    cdef public dict dialects
    cdef public dict names
    cdef public list strings
    cdef public list dialect_names
    cdef public list op_names
    cdef public dict attrs
    cdef public dict string_attrs
    cdef public dict types
    cdef public bint has_places

    cpdef Py_ssize_t string(self, str text) except -1

    @cython.locals(numbers=list)
    cpdef Py_ssize_t dictionary(self, attrs) except -1

    cpdef Py_ssize_t _encoded(self, Py_ssize_t kind, list numbers) except -1
    cpdef Py_ssize_t _string(self, str text) except -1

    @cython.locals(reader=NumberReader, found=bytearray, left=Py_ssize_t, end=Py_ssize_t, start=Py_ssize_t, count=Py_ssize_t, length=Py_ssize_t, ranges=list, known=set)
    cpdef tuple _given_attrs(self)
