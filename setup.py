"""The compiled core, which is optional: some modules through Cython, with the types of the `.pxd` files beside them.

Where Cython or a C compiler is missing, the package is installed without it and works the same, only slower. An
editable install is not compiled, as its modules are to be edited. `PYSHARDY_COMPILE=1` asks for the core whatever the
install, and fails without it; `PYSHARDY_COMPILE=0` leaves it out.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

_CHOICE = os.environ.get("PYSHARDY_COMPILE", "")
_MODULES = sorted(str(path.with_suffix(".py")) for path in Path("pyshardy").rglob("*.pxd"))


def _core() -> list[Any]:
    """The modules to compile: those with a `.pxd` file."""
    if _CHOICE == "0" or (_CHOICE != "1" and "editable_wheel" in sys.argv):
        return []
    extensions = [Extension(path.removesuffix(".py").replace("/", "."), [path]) for path in _MODULES]
    directives = {"language_level": 3, "annotation_typing": False}
    try:
        from Cython.Build import cythonize

        return list(cythonize(extensions, build_dir="build/core", compiler_directives=directives))
    except Exception as error:  # no Cython, or one that does not take the modules
        _do_without(error)
        return []


def _do_without(error: Exception) -> None:
    """Install without the core, unless it was asked for."""
    if _CHOICE == "1":
        raise error
    print(f"pyshardy is installed without its compiled core: {error}", file=sys.stderr)


class _BuildCore(build_ext):
    """Builds all modules of the core or none: compiled modules need each other's types."""

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            _do_without(error)
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = []


setup(ext_modules=_core(), cmdclass={"build_ext": _BuildCore})
