"""The kinds of findings: what each looks for, and its cures."""
