"""What the site needs besides Sphinx: each module is an extension of Sphinx."""
