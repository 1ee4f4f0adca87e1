"""What the site needs besides Sphinx: its extensions, and what they show of the package."""
