"""How lit runs the file-check tests: `lit -v tests/filecheck`, or pytest, which calls it.

A file that needs a dialect newer than the oldest supported one says `REQUIRES: jaxlib-0.12`.
"""

import shlex
import sys
from pathlib import Path

import lit.formats
from jaxlib.version import __version__

config.name = "pyshardy"  # noqa: F821 (lit provides `config`)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parent / ".lit")  # noqa: F821
config.environment["PYTHONPATH"] = str(Path(__file__).parent.parent.parent)  # noqa: F821 (this copy, not an installed one)

config.environment["PYTHONPATH"] = str(Path(__file__).parents[2])  # noqa: F821 (the package beside these tests)

python = shlex.quote(sys.executable)
filecheck = shlex.quote(str(Path(sys.executable).parent / "filecheck"))
config.substitutions += [  # noqa: F821
    ("sdy_opt", f"{python} -m pyshardy.opt"),
    ("FileCheck", filecheck),
]
if tuple(int(part) for part in __version__.split(".")[:2]) >= (0, 12):
    config.available_features.add("jaxlib-0.12")  # noqa: F821
