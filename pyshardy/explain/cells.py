"""Cells of notebooks, which Python compiles under names of files that nobody knows."""

from __future__ import annotations

import sys
from pathlib import PurePath


def cell_name(file: str) -> str | None:
    """What the notebook that runs calls the cell of this file name, as "In[3]"; None if it is no cell.

    >>> cell_name("/home/me/net.py") is None
    True
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = name_of(file) if name_of is not None else None
    return str(found[1]) if found else None


def file_name(file: str) -> str:
    """A file without its folders, or the cell of a notebook.

    >>> file_name("src/model.py")
    'model.py'
    """
    return cell_name(file) or PurePath(file).name
