# Types for the optional compiled core: see docs/performance.md.
cimport cython


cdef class NumberReader:
    cdef public bytes data
    cdef public Py_ssize_t position

    @cython.locals(data=bytes, position=Py_ssize_t, first=Py_ssize_t, length=Py_ssize_t)
    cpdef Py_ssize_t next(self) except -1

    @cython.locals(position=Py_ssize_t)
    cpdef int byte(self) except -1


cdef class NumberWriter:
    cdef public bytearray out

    @cython.locals(out=bytearray)
    cpdef put(self, Py_ssize_t number)
    cpdef byte(self, int value)
