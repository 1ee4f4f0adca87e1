# Types for the optional compiled core: see docs/performance.md.
cimport cython

from pyshardy.core.axis_lists cimport prefix_without_overlaps
from pyshardy.propagation.projection cimport FactorState, TensorState


cdef object _NONE, _BACKWARD, _BOTH


@cython.locals(axes=list, frozen=bint, found=FactorState, contributing=Py_ssize_t, place=Py_ssize_t)
cpdef tuple compatible_axes(factor, list states, Py_ssize_t operand_count, direction)


@cython.locals(position=Py_ssize_t)
cdef bint _follow(list axes, tuple new, bint frozen) except -1


@cython.locals(found=FactorState)
cpdef cut_by_other_factors(axis, TensorState state, factor)


cpdef cut_within_factor(axis, TensorState state, FactorState found, size, previous, mesh)


cdef class Cutter:
    cdef public object mesh
    cdef public bint is_conservative
    cdef public list kept
    cdef public object product

    cpdef bint take(self, axis, rest) except -1
