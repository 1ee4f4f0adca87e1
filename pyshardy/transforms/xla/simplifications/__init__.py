"""What `pyshardy-simplify` does with each kind of op; `table.py` lists it."""
