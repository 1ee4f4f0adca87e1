"""The compiled core, which is optional: some modules through Cython, with the types of the `.pxd` files beside them.

Where Cython or a C compiler is missing, the package is installed without it and works the same, only slower. An
editable install is not compiled, as its modules are to be edited. `PYSHARDY_COMPILE=1` asks for the core whatever the
install, and fails without it; `PYSHARDY_COMPILE=0` leaves it out. Progress is printed, which `pip install -v` shows.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from setuptools import Distribution, Extension, setup
from setuptools.command.build_ext import build_ext

_CHOICE = os.environ.get("PYSHARDY_COMPILE", "")
_MODULES = sorted(str(path.with_suffix(".py")) for path in Path("pyshardy").rglob("*.pxd"))
_BUILDS = {"build", "build_ext", "bdist_wheel", "develop", "editable_wheel", "install"}
"""The commands that compile; installers ask for metadata before, several times."""
_PROCESSES = os.cpu_count() or 1
_DIRECTIVES = {"language_level": 3, "annotation_typing": False, "auto_pickle": False, "binding": False}
"""Without pickling and the attributes of Python's functions there is a tenth less C code."""
_UNIX_FLAGS = ["-O1", "-g0", "-w"]
"""To compile with -O2 takes half as long again, and with Python's -O3 and debugging information twice as long; what
comes out is no faster than noise, as most of the time goes to Python objects."""


def _core() -> list[Any]:
    """The modules to compile: those with a `.pxd` file."""
    if _CHOICE == "0" or not _BUILDS.intersection(sys.argv) or (_CHOICE != "1" and "editable_wheel" in sys.argv):
        return []
    try:
        if _CHOICE != "1":
            _try_compiler()  # before Cython, which takes longer
        from Cython.Build import cythonize

        extensions = [Extension(path.removesuffix(".py").replace("/", "."), [path]) for path in _MODULES]
        print(f"translating {len(extensions)} modules to C ...", flush=True)
        return list(
            cythonize(
                extensions,
                build_dir="build/core",
                compiler_directives=_DIRECTIVES,
                nthreads=_PROCESSES,
                emit_linenums=False,
                quiet=True,
            )
        )
    except Exception as error:  # no compiler, no Cython, or one that does not take the modules
        _do_without(error)
        return []


def _try_compiler() -> None:
    """Compile an empty file.

    Raises:
        CompileError: There is no compiler that works.
    """
    command = build_ext(Distribution())
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "empty.c")
        source.write_text("#include <Python.h>\n")
        command.build_temp = folder
        command.extensions = [Extension("empty", [str(source)])]
        command.ensure_finalized()
        compiler = _compiler_of(command)
        compiler.compile([str(source)], output_dir=folder, include_dirs=command.include_dirs)


def _compiler_of(command: build_ext) -> Any:
    from distutils.ccompiler import new_compiler
    from distutils.sysconfig import customize_compiler

    compiler = new_compiler(compiler=command.compiler)
    customize_compiler(compiler)
    return compiler


def _do_without(error: Exception) -> None:
    """Install without the core, unless it was asked for."""
    if _CHOICE == "1":
        raise error
    print(f"pyshardy is installed without its compiled core: {error}", file=sys.stderr)


class _BuildCore(build_ext):
    """Builds all modules of the core or none: compiled modules need each other's types."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or _PROCESSES
        self.begun = 0

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            _do_without(error)
            for output in self.get_outputs():
                Path(output).unlink(missing_ok=True)
            self.extensions = []

    def build_extension(self, ext: Extension) -> None:
        self.begun += 1
        print(f"[{self.begun}/{len(self.extensions)}] compiling {ext.name}", flush=True)
        if self.compiler.compiler_type == "unix":
            ext.extra_compile_args = _UNIX_FLAGS
        super().build_extension(ext)


setup(ext_modules=_core(), cmdclass={"build_ext": _BuildCore})
