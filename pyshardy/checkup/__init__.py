"""What makes a program slower or larger than it need be: cures are tried, and those that pay are the findings."""
