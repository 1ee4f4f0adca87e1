# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.propagation.dead_ops cimport DeadOps
from pyshardy.propagation.plans cimport StepPlan, Plans

cdef int ALL_ROUNDS, DEAD, NO_VALUE, OWNER_AND_USERS, _FEW


cdef class PropagationEngine:
    cdef public object program
    cdef public list shardings
    cdef public object user_priority
    cdef public list _trace
    cdef public list _kinds
    cdef public Py_ssize_t _count
    cdef public int[::1] _kind_of
    cdef public int[::1] _tensors
    cdef public int[::1] _tensor_starts
    cdef public int[::1] _operands
    cdef public int[::1] _operand_starts
    cdef public int[::1] _owners
    cdef public int[::1] _users
    cdef public int[::1] _user_starts
    cdef public dict _views
    cdef public dict _notified
    cdef public dict _other_readers
    cdef public dict _group_of
    cdef public bytearray _reader_kind
    cdef public bytearray _lacks_single_use
    cdef public bytearray _state
    cdef public Plans _plans
    cdef public DeadOps _dead
    cdef public dict _clean
    cdef public list _cleans
    cdef public bytearray _todo
    cdef public bytearray _on_stack
    cdef public list _stack
    cdef public Py_ssize_t _next
    cdef public Py_ssize_t _visiting
    cdef public object _strategy

    @cython.locals(tensors=int[::1], place=Py_ssize_t)
    cpdef tuple _tensors_of(self, Py_ssize_t number)

    @cython.locals(kind_of=int[::1], state=bytearray, found=bytearray, initial=bytes, number=Py_ssize_t)
    cpdef bytearray _initially_clean(self)

    @cython.locals(stack=list, on_stack=bytearray, todo=bytearray, state=bytearray, end=Py_ssize_t, number=Py_ssize_t)
    cpdef _sweep(self, bytearray clean, list plans, int round_)

    @cython.locals(kind=Py_ssize_t, plan=StepPlan, current=tuple, outcome=tuple, updates=tuple, settled=int)
    cpdef _visit(self, Py_ssize_t number, bytearray clean, list plans, int round_)

    @cython.locals(shardings=list, tensors=int[::1], start=Py_ssize_t, end=Py_ssize_t, place=Py_ssize_t)
    cdef tuple _current(self, Py_ssize_t number, view)

    @cython.locals(tensors=int[::1], start=Py_ssize_t, tensor=Py_ssize_t, value=Py_ssize_t)
    cdef _write(self, Py_ssize_t number, tuple updates)

    @cython.locals(tensors=int[::1], start=Py_ssize_t, end=Py_ssize_t, place=Py_ssize_t, earlier=Py_ssize_t)
    cdef bint _is_distinct(self, Py_ssize_t number) except -1

    @cython.locals(clean=bytearray)
    cpdef _schedule_reader(self, Py_ssize_t number)

    @cython.locals(users=int[::1], place=Py_ssize_t)
    cpdef _mark_readers(self, Py_ssize_t value)

    @cython.locals(clean=bytearray)
    cpdef _mark(self, Py_ssize_t number)

    @cython.locals(to_revisit=tuple, users=int[::1], reader=Py_ssize_t, place=Py_ssize_t)
    cpdef _set_and_schedule(self, Py_ssize_t number, Py_ssize_t value, held, given)

    @cython.locals(number=Py_ssize_t)
    cpdef _push_all(self, tuple numbers)
    cpdef _push(self, Py_ssize_t number)

    @cython.locals(lacks_single_use=bytearray, operands=int[::1], place=Py_ssize_t)
    cpdef bint _waits(self, Py_ssize_t number) except -1
