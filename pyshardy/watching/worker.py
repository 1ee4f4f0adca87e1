"""The process that analyses programs, so that a crash of MLIR or XLA ends neither the script nor the watching.

It reads a line of JSON per program and writes one per answer. Only `Worker` starts it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import asdict, dataclass
from io import StringIO
from pathlib import Path
from threading import Timer
from typing import Any

from pyshardy.core.children import child_environment, end_child, ending_of
from pyshardy.errors import ShardyError

_DOING = "analysing"


@dataclass(frozen=True, slots=True)
class AnalysisTask:
    """A program to analyse.

    Attributes:
        file: The file with its text.
        name: Its name.
        wishes: The fields of `Wishes`.
        platform: The platform of the script's devices.
        kind: What JAX calls them.
        width: The width of the text.
        color: Whether the text is for a terminal with colours.
        page: The file to write its page to; empty for none.
        sources: The names of packages that count as user code, and those that count as libraries.
    """

    file: str
    name: str
    wishes: dict[str, Any]
    platform: str = ""
    kind: str = ""
    width: int = 120
    color: bool = False
    page: str = ""
    sources: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())


class Worker:
    """Asks a process of its own to analyse programs, one after the other, and starts another one after a crash.

    Args:
        timeout_s: The most seconds for a program.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._child: subprocess.Popen[str] | None = None
        self._log = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 (open as long as the worker is)

    def ask(self, task: AnalysisTask) -> dict[str, Any]:
        """The answer on a program: "text", "data", and "inputs", the shape and sharding of every input.

        Raises:
            ShardyError: It cannot be read or analysed, or that takes too long.
        """
        child = self._started()
        assert child.stdin is not None and child.stdout is not None
        is_late = False

        def end() -> None:
            nonlocal is_late
            is_late = True
            self._end()

        timer = Timer(self._timeout_s, end)
        timer.start()
        try:
            with suppress(BrokenPipeError):
                child.stdin.write(json.dumps(asdict(task)) + "\n")
                child.stdin.flush()
            line = child.stdout.readline()
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            self._end()
            hint = "--timeout SECONDS" if is_late else None
            got = f"no answer in {self._timeout_s:g} s" if is_late else f"a process that {self._ending(child)}"
            raise ShardyError(f"{_DOING} {task.name}", got=got, hint=hint)
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ShardyError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._end()
        self._log.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._child is None:
            self._log.seek(0)
            self._log.truncate()
            environment = child_environment({"JAX_PLATFORMS": "cpu"})
            environment.pop("JAX_DUMP_IR_TO", None)
            self._child = subprocess.Popen(  # in a session of its own, which Ctrl-C does not end
                [sys.executable, "-m", "pyshardy.watching.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._log, env=environment, text=True, start_new_session=True,
            )  # fmt: skip
        return self._child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        end_child(child)
        for stream in (child.stdin, child.stdout):
            with suppress(BrokenPipeError):
                if stream is not None:
                    stream.close()

    def _ending(self, child: subprocess.Popen[str]) -> str:
        self._log.seek(0)
        return ending_of(child.returncode, self._log.read())


def main() -> None:
    """Answer until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no answer
    for line in sys.stdin:
        answers.write(json.dumps(_answer(AnalysisTask(**json.loads(line)))) + "\n")
        answers.flush()


def _answer(task: AnalysisTask) -> dict[str, Any]:
    from pyshardy.core.files import write_whole
    from pyshardy.report.printing import TableOptions
    from pyshardy.report.specs import Notation
    from pyshardy.source.places import user_code_of
    from pyshardy.watching.analysis import Wishes, analyse

    wishes = dict(task.wishes)
    tables = wishes.pop("tables")
    options = TableOptions(Notation(tables["notation"]), tables["unfold"])
    try:
        with user_code_of(*task.sources):
            found = analyse(
                Path(task.file).read_bytes(), task.name, Wishes(**wishes, tables=options), task.platform, task.kind
            )
            data = found.to_json()
            if task.page:
                write_whole(task.page, found.page())
            return {"text": _text(found.tables(), task.width, task.color), "data": data, "inputs": found.inputs()}
    except ShardyError as error:
        return {"error": str(error)}
    except MemoryError:
        return {"error": f"{_DOING} {task.name}: got a program that takes more memory than there is"}
    except Exception as error:  # a fault of pyshardy, which must not end the watching
        return {"error": f"{_DOING} {task.name}: got a fault of pyshardy: {error!r}; please report it with the program"}


def _text(page: Any, width: int, color: bool) -> str:
    from rich.console import Console

    from pyshardy.report.printing import plain_text

    if not color:
        return plain_text(page, width)
    stream = StringIO()
    Console(file=stream, width=width, force_terminal=True, highlight=False).print(page, soft_wrap=True)
    return stream.getvalue()


if __name__ == "__main__":
    main()
