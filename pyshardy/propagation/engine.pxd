# Types for the optional compiled core: see docs/performance.md.
cimport cython


cdef class _Plan:
    cdef public object step
    cdef public int same
    cdef public dict outcomes
    cdef public bint waits


cdef class Engine:
    cdef public object program
    cdef public list shardings
    cdef public object user_priority
    cdef public object _is_conservative
    cdef public list _trace
    cdef public list _kinds
    cdef public list _kind_of
    cdef public list _tensors
    cdef public object _views
    cdef public dict _notified
    cdef public object _owners
    cdef public object _users
    cdef public dict _other_readers
    cdef public dict _group_of
    cdef public bytearray _is_plain
    cdef public list _uses_left
    cdef public bytearray _is_spread
    cdef public bytearray _state
    cdef public dict _outcomes
    cdef public dict _plans
    cdef public dict _clean
    cdef public bytearray _todo
    cdef public bytearray _on_stack
    cdef public list _stack
    cdef public Py_ssize_t _next
    cdef public Py_ssize_t _visiting

    @cython.locals(operands=list, results=list, readers=dict, number=Py_ssize_t, tensors=tuple, near=tuple)
    cpdef dict _find_other_readers(self)

    @cython.locals(stack=list, on_stack=bytearray, todo=bytearray, state=bytearray, end=Py_ssize_t, number=Py_ssize_t)
    cpdef _sweep(self, bytearray clean, list plans, int round_)

    @cython.locals(plan=_Plan, shardings=list, current=tuple, outcome=tuple, updates=tuple, settled=int, tensors=tuple, value=Py_ssize_t, tensor=Py_ssize_t)
    cpdef _visit(self, Py_ssize_t number, bytearray clean, list plans, int round_)

    @cython.locals(told=tuple, clean=bytearray, reader=Py_ssize_t)
    cpdef _set_and_tell(self, Py_ssize_t number, Py_ssize_t value, held, given)

    @cython.locals(on_stack=bytearray, todo=bytearray, stack=list, following=Py_ssize_t, visiting=Py_ssize_t, number=Py_ssize_t)
    cpdef _push_all(self, tuple numbers)

    @cython.locals(is_spread=bytearray, value=Py_ssize_t)
    cpdef bint _waits(self, Py_ssize_t number) except -1
