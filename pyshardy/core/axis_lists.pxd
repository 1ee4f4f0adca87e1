# Types for the optional compiled core: see docs/performance.md.
cimport cython


cpdef prefix_without_overlaps(axis, others)


@cython.locals(count=Py_ssize_t)
cpdef bint is_strict_prefix(tuple first, tuple second) except -1
cpdef bint is_prefix(tuple first, tuple second) except -1
