"""What XLA does to a program before Shardy sees it, op by op."""
