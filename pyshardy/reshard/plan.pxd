# Types for the optional compiled core: see docs/performance.md.
