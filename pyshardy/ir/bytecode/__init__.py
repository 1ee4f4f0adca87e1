"""MLIR's bytecode format, and nothing else: numbers, sections, tables, ops. Described in docs/bytecode.md."""
