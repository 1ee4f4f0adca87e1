"""What several tests share: the reference passes, comparisons, programs."""
