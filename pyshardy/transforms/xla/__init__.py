"""What XLA does to a program before it calls Shardy, op by op."""
