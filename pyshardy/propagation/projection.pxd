# Types for the optional compiled core: see docs/performance.md.
cimport cython


cdef class FactorState:
    cdef public tuple axes
    cdef public bint is_closed
    cdef public bint is_minor_most
    cdef public tuple overflow


cdef class TensorState:
    cdef public dict factors
    cdef public tuple blocked


@cython.locals(factors=dict, dim=tuple, dims=tuple, index=Py_ssize_t)
cpdef TensorState project(sharding, tuple mapping, tuple sizes, mesh)


@cython.locals(found=dict, tensor=Py_ssize_t, mapping=tuple, dims=tuple, index=Py_ssize_t, axes=tuple)
cpdef dict axes_if_same(rule, shardings)


@cython.locals(is_closed=bint, overflows=bint, todo=tuple, taken=tuple, position=Py_ssize_t)
cdef _project_dim(sharding, tuple dim, tuple sizes, mesh, dict factors)
@cython.locals(found=list, index=Py_ssize_t, dim=tuple)
cpdef tuple unproject(TensorState state, tuple mapping, tuple sizes, mesh, tuple before=*)
cpdef take_axes(tuple axes, size, mesh)


@cython.locals(only=FactorState, state=FactorState, axes=list, is_closed=bint, part=tuple)
cdef _unproject_dim(dict factors, tuple dim, tuple sizes, mesh, before)
