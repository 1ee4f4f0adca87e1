"""Faults, planted into a worker: what looks for faults has to find them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from end_to_end import numbers_compare

from pyshardy.cli import files
from pyshardy.cli import main as main_command
from pyshardy.frontend import isolated
from pyshardy.ir.module import Module

from .cases import OUTPUT

_main, _parse = main_command.main, Module.parse.__func__  # type: ignore[attr-defined]
_run = numbers_compare.pyshardy.Partition.run_flat


def _plant(name: str, fault: Any) -> None:
    """Put a fault in the place of the command line, before it does what it does."""

    def planted(argv: Sequence[str] | None = None) -> int:
        if argv and argv[0] == name:
            found: int | None = fault()
            if found is not None:
                return found
        return _main(argv)

    main_command.main = planted


def traceback() -> None:
    """An exception gets out."""
    _plant("propagate", lambda: {}["missing"])


def printed_traceback() -> None:
    """An exception is printed."""
    _plant("propagate", lambda: print("Traceback (most recent call last):\n  x\nKeyError: 'x'", file=sys.stderr) or 1)


def hang() -> None:
    """A command waits for ever."""
    _plant("propagate", lambda: time.sleep(3600))


def loop() -> None:
    """A command computes for ever."""

    def spin() -> None:
        while True:
            pass

    _plant("propagate", spin)


def slow_compiler() -> None:
    """XLA takes longer to compile than a command may take, but comes back."""

    def backend_compile_and_load() -> None:
        end = time.process_time() + 4
        while time.process_time() < end:
            pass

    code = backend_compile_and_load.__code__
    backend_compile_and_load.__code__ = code.replace(co_filename="/jax/_src/compiler.py")
    _plant("propagate", backend_compile_and_load)


def wait() -> None:
    """A command takes longer by the clock than it may take of the processor, as on a busy machine: no fault."""
    _plant("propagate", lambda: time.sleep(4))


def signals() -> None:
    """A command ends the process, outside of the reader."""
    _plant("propagate", lambda: os.kill(os.getpid(), signal.SIGSEGV))


def half_file() -> None:
    """A command fails while it writes."""
    _plant("propagate", lambda: Path(OUTPUT).write_text("module {\n  func") and print("error: x", file=sys.stderr) or 1)


def leftover() -> None:
    """A command leaves a temporary file."""
    _plant("propagate", lambda: Path(".pyshardy-1-0").write_text("x") and None)


def silence() -> None:
    """A command fails without a word."""
    _plant("propagate", lambda: 1)


def noise() -> None:
    """Something prints an error that Python does not see."""
    _plant("propagate", lambda: os.write(2, b"error: from elsewhere\n") and None)


def wrong_answer() -> None:
    """A program has other numbers on several devices."""

    def run(*args: Any, **options: Any) -> tuple[Any, ...]:
        return tuple(output + (output == output) for output in _run(*args, **options))

    numbers_compare.pyshardy.Partition.run_flat = run


def other_output() -> None:
    """The second time, something else comes out."""
    count = iter(range(10**9))
    write = files.write_whole
    files.write_whole = lambda path, content: write(path, b"// %d\n" % next(count) + content)


def reader_signal() -> None:
    """The reader ends the process, as some bytecode makes it do; in a process of its own it is an error."""

    def parse(cls: type[Module], source: str | bytes, **options: Any) -> Module:
        os.kill(os.getpid(), signal.SIGSEGV)
        return _parse(cls, source, **options)  # type: ignore[no-any-return]

    parse.__code__ = parse.__code__.replace(co_filename="/pyshardy/ir/module.py")
    Module.parse = classmethod(parse)  # type: ignore[assignment, method-assign]
    isolated._CHILD = "import os; os.abort()"


def isolated_signal() -> None:
    """The same, but what the child wrote ends the process too."""
    reader_signal()
    isolated.read_isolated = lambda content, name, allow=False: os.kill(os.getpid(), signal.SIGSEGV)  # type: ignore
