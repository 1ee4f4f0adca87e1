# Types for the optional compiled core: see docs/performance.md.
cimport cython


cdef class DeadOps:
    cdef public object program
    cdef public bytearray state
    cdef public bytearray lacks_single_use
    cdef public int[::1] _uses_left

    @cython.locals(owners=int[::1], uses_left=int[::1], starts=int[::1], value=Py_ssize_t, number=Py_ssize_t, count=Py_ssize_t, found=bytearray)
    cpdef bytearray _find_dead(self)

    @cython.locals(state=bytearray, changes=list, inner=Py_ssize_t, value=Py_ssize_t, owner=Py_ssize_t)
    cpdef list erase(self, Py_ssize_t number)

    @cython.locals(uses_left=int[::1], results=int[::1], starts=int[::1], place=Py_ssize_t)
    cpdef bint _is_dead(self, Py_ssize_t number) except -1
