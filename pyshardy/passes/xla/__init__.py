"""The rewrites that XLA applies to a program before it calls Shardy."""
