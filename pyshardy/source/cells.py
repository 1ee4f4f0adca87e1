"""Names of notebook cells, which Python compiles under generated file names."""

from __future__ import annotations

import sys
from pathlib import PurePath


def cell_name(file: str) -> str | None:
    """The name of the cell with this file name in the running notebook, such as "In[3]"; None if it is not a cell.

    >>> cell_name("/home/me/net.py") is None
    True
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    found = name_of(file) if name_of is not None else None
    return str(found[1]) if found else None


def file_name(file: str) -> str:
    """A file without its directories, or the cell of a notebook; for the file of a package itself, with the package.

    >>> file_name("src/model.py"), file_name("/x/site-packages/mymodel/__init__.py")
    ('model.py', 'mymodel/__init__.py')
    """
    path = PurePath(file)
    return cell_name(file) or ("/".join(path.parts[-2:]) if path.name == "__init__.py" else path.name)
