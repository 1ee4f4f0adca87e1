"""What `propagate` and `partition` give: results that go on from what is known, and show themselves alike."""
