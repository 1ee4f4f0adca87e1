"""What may send fewer bytes: annotations, constraints and code that are tried."""
