# Types for the optional compiled core: see docs/performance.md.
cpdef mesh_of(sharding, meshes)
