# Types for the optional compiled core: see docs/performance.md.
cimport cython


@cython.locals(index=Py_ssize_t, tensor=tuple, used=set, dim=tuple)
cpdef _check(tuple sizes, tuple operands, tuple results, tuple kinds, tuple blocked, is_custom)


@cython.locals(seen=set, position=Py_ssize_t, dim=tuple)
cdef set _check_tensor(tuple tensor, tuple sizes, str kind, Py_ssize_t index)
