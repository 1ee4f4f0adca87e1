# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.ir.op cimport Op


cdef class GreedyDriver:
    cdef public dict patterns
    cdef public bint top_down
    cdef public list stack
    cdef public set pending
    cdef public object rewriter

    cpdef _push(self, Op op)

    @cython.locals(ops=list, op=Op)
    cpdef bint _iterate(self, Op root) except -1

    @cython.locals(op=Op, patterns=dict)
    cpdef bint _has_work(self, list ops) except -1

    @cython.locals(stack=list, pending=set, patterns=dict, op=Op, changed=bint)
    cpdef bint _empty_stack(self) except -1
