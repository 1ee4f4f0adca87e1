"""Passes that several pipelines use."""
