"""What ends a process, or runs for ever, without pyshardy's part in it: programs tried in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from .corpus import ROOT

_READ_SECONDS = 30
"""How long a process that only reads a mutant may take."""
_READERS = 5
"""How many processes only read a mutant, at most, in each of two environments."""
_RUN_SECONDS = 60
"""How long a program that runs alone may take."""
_STRICT = {"PYTHONMALLOC": "malloc", "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "165"}
"""The environment in which what was overwritten in memory is mostly noticed; some is noticed in the usual one alone."""

_PARTITIONED = "import sys; from pyshardy.cli.main import main; sys.exit(main(sys.argv[1:]))"

_READ = """
import gc
import sys
from jaxlib.mlir import ir
from pyshardy.ir.context import make_context
content = sys.stdin.buffer.read()
for _ in range(5):
    context = make_context(allow_unregistered_dialects=True)
    with context:
        try:
            module = ir.Module.parse(content)
        except Exception as error:
            str(error)
    module = context = None
    gc.collect()
"""

_RUN = """
import sys
import pyshardy
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.input_uses import input_uses
from pyshardy.runtime.inputs import random_inputs
module = pyshardy.load(sys.stdin.buffer.read(), allow_unregistered_dialects=True)
inputs = random_inputs(pyshardy.propagate(module).inputs, 0, input_uses(module))
print("runs", flush=True)
[str(output) for output in run_on_one_device(module, inputs)]
"""

_CONVOLVE = """
import re
import sys
import pyshardy
from pyshardy.runtime.execute import run_on_one_device
from pyshardy.runtime.inputs import random_inputs
name, tensor = '"stablehlo.convolution"', "(tensor<[^>]*(?:<[^>]*>)?>)"
text = pyshardy.partition(sys.stdin.buffer.read(), view="stablehlo").module.text(generic=True)
for attributes, one, two, out in re.findall(rf"{name}[^<]*(<{{.*}}>).* : \\({tensor}, {tensor}\\) -> {tensor}", text):
    op = f"%0 = {name}(%a, %b) {attributes} : ({one}, {two}) -> {out}"
    module = pyshardy.load(f"func.func @main(%a: {one}, %b: {two}) -> {out} {{ {op} return %0 : {out} }}")
    run_on_one_device(module, random_inputs(pyshardy.propagate(module).inputs, 0))
"""


def environment() -> dict[str, str]:
    """The variables of a process that can import pyshardy and what the tests have, wherever it is."""
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}


def ends_reader(content: bytes) -> bool:
    """Whether a process that only reads a bytecode, with jaxlib's reader, and lets go of it, ends with a signal.

    What is overwritten depends on where memory is, so several processes try. One that does not end counts too: what was
    overwritten may be a length, and the reader counts up to it.
    """
    return any(_ends(_READ, content, memory, hanging=True) for _ in range(_READERS) for memory in (_STRICT, {}))


def ends_convolution(content: bytes) -> bool:
    """Whether a process with one device ends with a signal over one of the convolutions that a program is to shards."""
    return _ends(_CONVOLVE, content, {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": ""})


def ends_partitioner(content: bytes, flags: Sequence[str] = ()) -> bool:
    """Whether a process ends with a signal that runs a program on devices for which XLA has partitioned it."""
    return _ends(_PARTITIONED, content, {}, "run", "-", *flags, "--engine=xla", "--no-check")


def runs_for_ever(content: bytes) -> bool:
    """Whether a program does not end when it runs on one device as it stands."""
    try:
        _run(_RUN, content, _RUN_SECONDS, {"JAX_PLATFORMS": "cpu"})
    except subprocess.TimeoutExpired as error:
        return error.stdout == b"runs\n"
    return False


def _ends(code: str, content: bytes, variables: Mapping[str, str], *arguments: str, hanging: bool = False) -> bool:
    """Whether a process ends with a signal; `hanging` if it does not come back."""
    try:
        return _run(code, content, _READ_SECONDS, variables, *arguments) < 0
    except subprocess.TimeoutExpired:
        return hanging


def _run(code: str, content: bytes, seconds: float, variables: Mapping[str, str], *arguments: str) -> int:
    """The exit status of a Python process with its own code, input and variables, which may take so many seconds."""
    command, own = [sys.executable, "-c", code, *arguments], environment() | dict(variables)
    return subprocess.run(command, input=content, capture_output=True, env=own, timeout=seconds).returncode
