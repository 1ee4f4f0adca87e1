"""Factor propagation: pure Python over interned shardings and integers."""
