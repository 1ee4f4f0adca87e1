"""The rewrites that XLA makes of a program before Shardy sees it."""
