"""A long comparison with the reference: `python -m tests.differential.reshard_campaign --modules 20000`.

Prints every difference and, at the end, the number of modules; the exit status is 1 if there was a difference.
Modules run in child processes, because the reference ends its process on some of them.
"""
