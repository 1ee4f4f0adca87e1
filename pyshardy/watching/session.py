"""What a watched script compiled, analysed while it runs: the programs that are shown, and the names of the others."""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from pyshardy.core.files import write_whole
from pyshardy.errors import ShardyError
from pyshardy.watching.found import Found
from pyshardy.watching.hidden import listed
from pyshardy.watching.index import index_page
from pyshardy.watching.names import changed_inputs, with_name, with_names
from pyshardy.watching.running import Compiled, Ending
from pyshardy.watching.worker import AnalysisTask, Worker

_UNFIT = re.compile(r"[^\w.-]+")
_PLACES = re.compile(rb"^#loc.*\n| loc\((?:#loc\d*|\"(?:[^\"\\]|\\.)*\"|unknown)\)", re.MULTILINE)
"""Names and lines, which also tell from where a program was called."""


def _other_version(script: str) -> str:
    """A word on the versions of JAX if the script has another one, whose programs may not be readable here."""
    own = version("jax")
    return f"\n  the script runs jax {script}, and pyshardy jax {own}" if script and script != own else ""


class Session:
    """Analyses programs in the order in which they come, beside the script.

    Args:
        task: How programs are analysed; the file, the name and the devices are those of each program.
        tell: Is called with every program once it is analysed.
        report: The directory for pages, which exists; empty for none.
        timeout_s: The most seconds for a program.
    """

    def __init__(
        self, task: AnalysisTask, tell: Callable[[Found], None], report: str = "", timeout_s: float = 600.0
    ) -> None:
        self.found: list[Found] = []
        self.hidden: Counter[tuple[str, str]] = Counter()
        self.again: Counter[str] = Counter()
        self._task = task
        self._tell = tell
        self._report = Path(report) if report else None
        self._worker = Worker(timeout_s)
        self._folder = tempfile.TemporaryDirectory(prefix="pyshardy-", ignore_cleanup_errors=True)
        self._known: dict[bytes, str] = {}
        self._versions: Counter[str] = Counter()
        self._inputs: dict[str, dict[str, str]] = {}
        self._waiting: SimpleQueue[tuple[Found, Path] | None] = SimpleQueue()
        self._failure: BaseException | None = None
        self._thread = Thread(target=self._work, daemon=True)
        self._thread.start()

    def see(self, compiled: Compiled, content: bytes) -> None:
        """Take a program; analyse it if it is one to show and is new."""
        if compiled.hidden:
            self.hidden[compiled.name, compiled.hidden] += 1
            return
        key = hashlib.sha256(_PLACES.sub(b"", content)).digest()
        if key in self._known:
            self.again[self._known[key]] += 1
            return
        content = with_name(with_names(content, compiled.names), compiled.name)
        self._versions[compiled.name] += 1
        number = sum(self._versions.values())
        found = Found(number, compiled, self._versions[compiled.name])
        self._known[key] = found.title
        path = Path(self._folder.name) / f"{number}.mlir"
        path.write_bytes(content)
        self._waiting.put((found, path))

    @property
    def waiting(self) -> int:
        """The number of programs that are not analysed yet."""
        return sum(self._versions.values()) - len(self.found)

    def finish(self) -> None:
        """Wait until all programs are analysed.

        Raises:
            ShardyError: A page of the report cannot be written.
        """
        self._waiting.put(None)
        try:
            self._thread.join()
        finally:
            self._worker.close()
            self._folder.cleanup()
        if self._failure is not None:
            raise self._failure

    def others(self) -> list[dict[str, Any]]:
        """The programs that are not shown, the most frequent first, as JSON-ready data."""
        return listed(self.hidden)

    def to_json(self, command: list[str], ending: Ending | None = None) -> dict[str, Any]:
        """All of it as JSON-ready data.

        Args:
            command: The command that was watched.
            ending: How it ended; None while it runs.
        """
        script = {"command": command, "running": ending is None}
        if ending is not None:
            script |= {"status": ending.status, "stopped": ending.stopped, "watched": ending.was_watched}
        return {
            "script": script,
            "programs": [found.to_json() for found in self.found],
            "compiled_again": [{"name": name, "count": count} for name, count in sorted(self.again.items())],
            "others": self.others(),
        }

    def _work(self) -> None:
        """Analyse what waits, until None does."""
        while (waiting := self._waiting.get()) is not None:
            if self._failure is not None:
                continue
            try:
                found = self._analysed(*waiting)
                self.found.append(found)
                if self._report is not None:
                    write_whole(self._report / "index.html", index_page(self.found, self.others()))
                self._tell(found)
            except BaseException as error:  # raised again by `finish`; the script goes on
                self._failure = error

    def _analysed(self, found: Found, path: Path) -> Found:
        compiled = found.compiled
        stem = f"{found.number:02d}-{_UNFIT.sub('_', compiled.name)}"
        page = f"{stem}.html" if self._report is not None else ""
        if self._report is not None:
            write_whole(self._report / f"{stem}.mlir", path.read_bytes())
        task = replace(
            self._task, file=str(path), name=found.title, platform=compiled.platform, kind=compiled.kind,
            page=str(self._report / page) if self._report is not None else "",
        )  # fmt: skip
        try:
            answer = self._worker.ask(task)
        except ShardyError as error:
            return replace(found, error=f"{error}{_other_version(compiled.jax)}")
        finally:
            path.unlink()
        before = self._inputs.get(compiled.name)
        self._inputs[compiled.name] = answer["inputs"]
        again = () if before is None else changed_inputs(before, answer["inputs"])
        return replace(found, text=answer["text"], data=answer["data"], page=page, again=again)
