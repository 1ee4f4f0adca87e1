# Types for the optional compiled core: see docs/performance.md.
cimport cython


cdef class AttrTable:
    cdef public bint loses_locations
    cdef public bint has_odd_strings
    cdef public dict _decoded_dicts
    cdef public dict _decoded
    cdef public dict _encoded
    cdef public dict _types
    cdef public dict _parsed
    cdef public dict _tensors
    cdef public dict _likes
    cdef public object _with_references

    @cython.locals(content=dict, index=Py_ssize_t)
    cpdef _decode_dict(self, attr)

    @cython.locals(encoded=dict)
    cpdef _encode_dict(self, attrs)
    cpdef _decode(self, codec, attr)
    cpdef _encode(self, codec, value)
