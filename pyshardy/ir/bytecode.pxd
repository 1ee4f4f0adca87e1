# Types for the optional compiled core: see docs/performance.md.
cimport cython


@cython.locals(first=Py_ssize_t, length=Py_ssize_t)
cpdef tuple number_at(data, Py_ssize_t position)


@cython.locals(lengths=list, length=Py_ssize_t, found=list)
cpdef list _strings(bytes data, Py_ssize_t position)


cpdef bytes encode_number(number)


@cython.locals(found=bytearray, number=Py_ssize_t)
cpdef bytes encode_numbers(numbers)
