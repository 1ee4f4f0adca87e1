"""How lit runs the file-check tests: `lit -v tests/filecheck`, or pytest, which calls it."""

import shlex
import sys
from pathlib import Path

import lit.formats

config.name = "pyshardy"  # noqa: F821 (lit provides `config`)
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parent / ".lit")  # noqa: F821

python = shlex.quote(sys.executable)
filecheck = shlex.quote(str(Path(sys.executable).parent / "filecheck"))
config.substitutions += [  # noqa: F821
    ("sdy_opt", f"{python} -m pyshardy.opt"),
    ("FileCheck", filecheck),
]
