"""Make ops work on shards instead of whole tensors: one file per family of ops.

Source: docs/semantics/partitioner.md#from-global-to-local
Source: docs/semantics/partitioner.md#collectives
"""
