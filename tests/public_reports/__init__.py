"""Programs of public reports, each with the way out that its thread found."""
