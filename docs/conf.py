"""How Sphinx makes the site of these pages: `make docs`."""

from __future__ import annotations

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # for `site_parts`

project = "pyshardy"
author = "the authors of pyshardy"
version = release = installed_version("pyshardy")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "site_parts.highlighting",
    "site_parts.reference",
    "site_parts.dark_pictures",
    "site_parts.inline_drawings",
    "site_parts.notebooks",
    "site_parts.offline",
    "site_parts.wrapping",
]
exclude_patterns = ["examples"]
default_role = "code"  # in docstrings
smartquotes = False  # quotes belong to names of axes

# Pages: Markdown as GitHub shows it, with links to headings.
myst_heading_anchors = 4
copybutton_exclude = ".linenos, .gp, .go"

# Docstrings: sections "Args", "Attributes" and "Raises"; types stay in the signature.
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 100

# The look. Nothing comes from elsewhere: furo uses the fonts of the system, and has its scripts with it.
html_theme = "furo"
html_title = "pyshardy"
html_static_path = ["site_parts/static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "native"
