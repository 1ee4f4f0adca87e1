# Types for the optional compiled core: see docs/performance.md.
cimport cython


@cython.locals(tensors=int[::1], starts=int[::1], operands=int[::1], operand_starts=int[::1], results=int[::1], result_starts=int[::1], count=Py_ssize_t, number=Py_ssize_t, place=Py_ssize_t, end=Py_ssize_t, other=Py_ssize_t, index=Py_ssize_t, value=int, readers=dict)
cpdef dict find_other_readers(program, lists)


@cython.locals(place=Py_ssize_t)
cdef bint _holds(int[::1] numbers, Py_ssize_t start, Py_ssize_t end, int number) except -1


@cython.locals(starts=int[::1], counts=int[::1], value=Py_ssize_t)
cpdef count_uses(program)


@cython.locals(starts=int[::1], value=Py_ssize_t, found=bytearray)
cpdef bytearray find_without_single_use(program)


@cython.locals(starts=int[::1], holders=int[::1], users=Py_ssize_t, value=Py_ssize_t, to_revisit=tuple, found=bytearray)
cpdef bytearray classify_readers(program, apart)
