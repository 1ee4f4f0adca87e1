"""Runs a script unchanged, and says which programs JAX compiles in it while it runs."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyshardy.errors import UsageError
from pyshardy.watching.inside import ENDING, WATCH_VARIABLE, Request, read_head, why_hidden

_DOING = "starting the script"
_POLL_S = 0.1
_MOST_POLLS = 20
_GRACE_S = 10.0
"""The time that a script has to end by itself once it was asked to."""
_ELSEWHERE = (
    "torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec", "orterun", "srun", "sbatch", "ssh",
    "kubectl", "gcloud", "docker", "podman", "ray", "xpk",
)  # fmt: skip
_MODULES_ELSEWHERE = ("torch.distributed", "accelerate.commands", "deepspeed.launcher", "horovod.runner")
_PYTHON = re.compile(r"python[\d.]*(\.exe)?")
_UNHOOKED = "unhooked"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program that the script compiled.

    Attributes:
        file: The file that JAX dumped it to.
        name: The name of the module.
        devices: The number of devices that it runs on.
        hidden: Why it is not shown; empty if it is.
        process: The index of the process, as JAX counts them.
        platform: The platform of the devices, such as "gpu"; empty if unknown.
        kind: What JAX calls the devices; empty if unknown.
        stops: Whether the script was ended before this program ran.
        jax: The version of the script's JAX; empty if unknown.
        names: Names in a model for those that a framework handed to JAX, with the first sizes of the array.
    """

    file: str
    name: str
    devices: int
    hidden: str
    process: int = 0
    platform: str = ""
    kind: str = ""
    stops: bool = False
    jax: str = ""
    names: Mapping[str, tuple[str, Sequence[int]]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a watched script ended.

    Attributes:
        status: Its exit status. If a signal ended it, 128 plus the number of the signal, or 0 if that was asked for.
        stopped: Whether it was ended because enough programs were seen.
        was_watched: Whether JAX loaded the watcher in it.
        may_have_run: Whether the program before which it was to end may have run.
        speaks: Whether process 0 of the job is one of its processes. Only then is there something to show here.
    """

    status: int
    stopped: bool
    was_watched: bool
    may_have_run: bool = False
    speaks: bool = True


def command_of(given: Sequence[str]) -> list[str]:
    """The command that a command line asks to watch: a script with its arguments, or what stands behind `--`.

    Raises:
        UsageError: There is none, it is no Python script, or it starts its processes elsewhere.

    >>> command_of(["--", "python", "-m", "trainer", "--steps", "3"])
    ['python', '-m', 'trainer', '--steps', '3']
    """
    needed = "a script, like train.py --steps 3, or a command behind --, like -- python -m trainer"
    if not given or list(given) == ["--"]:
        raise UsageError(_DOING, got="no script", needed=needed)
    if given[0] == "--":
        _refuse_elsewhere(given[1:])
        return list(given[1:])
    script = given[0]
    if script.endswith(".ipynb"):
        hint = "%load_ext pyshardy in the notebook, and %%sharding at the top of a cell"
        raise UsageError(_DOING, got=f"the notebook {script}", needed=needed, hint=hint)
    if not os.path.isfile(script):
        is_command = "/" not in script and not script.endswith(".py")
        command = f"pyshardy watch -- {' '.join(given)}" if is_command else None
        raise UsageError(_DOING, got=f"no file {script}", needed=needed, hint=command)
    return [sys.executable, *given]


def _refuse_elsewhere(command: Sequence[str]) -> None:
    """Refuse launchers that start processes where the dumps cannot be read.

    Raises:
        UsageError: It is one.
    """
    name = os.path.basename(command[0])
    module = ""
    if _PYTHON.fullmatch(name) and "-m" in command[:-1]:
        module = command[command.index("-m") + 1]
    if name in _ELSEWHERE or module.startswith(_MODULES_ELSEWHERE):
        raise UsageError(
            _DOING,
            got=f"{module or name}, which starts processes of its own, on other machines too",
            needed="the command that it starts, with pyshardy watch in front of it; process 0 then speaks",
            hint=f"{module or name} ... pyshardy watch train.py",
        )


def run(
    command: Sequence[str],
    request: Request,
    environment: Mapping[str, str],
    see: Callable[[Compiled, bytes], None],
) -> Ending:
    """Run a command to its end, and say which programs JAX compiles in it.

    Args:
        command: The command.
        request: What is asked for; its folder is chosen here.
        environment: The environment of the command.
        see: Is called with every program of process 0 and its text, in the order of their compilation.

    Raises:
        UsageError: The command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="pyshardy-watch-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        request = replace(request, folder=str(folder / "dumps"))
        try:
            child = subprocess.Popen(list(command), env=_environment(folder, request, environment))
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(
                _DOING, got=f"{command[0]}: {reason}", needed="a script or a command that can be run"
            ) from error
        try:
            return _Watch(child, request, see).to_the_end()
        except BaseException:  # the script goes on to its end all the same
            child.wait()
            raise


def _environment(folder: Path, request: Request, given: Mapping[str, str]) -> dict[str, str]:
    """The environment in which JAX finds the watcher."""
    dumps = Path(request.folder)
    plugins = folder / "path" / "jax_plugins"
    plugins.mkdir(parents=True)
    dumps.mkdir()
    sources = importlib.resources.files("pyshardy.watching")
    (plugins / "pyshardy_watch.py").write_bytes((sources / "inside.py").read_bytes())
    (plugins.parent / "pyshardy_watch_calls.py").write_bytes((sources / "calls.py").read_bytes())
    environment = dict(given)
    paths = [str(plugins.parent), *filter(None, [given.get("PYTHONPATH")])]
    environment |= {"PYTHONPATH": os.pathsep.join(paths), WATCH_VARIABLE: request.text()}
    if not given.get("JAX_DUMP_IR_TO"):  # for a Python that does not look at PYTHONPATH
        environment["JAX_DUMP_IR_TO"] = str(dumps / _UNHOOKED)
        environment["JAX_INCLUDE_DEBUG_INFO_IN_DUMPS"] = "1"
        environment["JAX_DUMP_IR_MODES"] = "stablehlo"
    if request.devices:
        environment |= {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": str(request.devices)}
    return environment


class _Watch:
    """Follows a running command.

    Args:
        child: The command.
        request: What was asked for.
        see: Is called with every program.
    """

    def __init__(
        self, child: subprocess.Popen[bytes], request: Request, see: Callable[[Compiled, bytes], None]
    ) -> None:
        self._child = child
        self._request = request
        self._see = see
        self._dumps = Path(request.folder)
        self._read: dict[Path, int] = {}
        self._unhooked: set[Path] = set()
        self._was_watched = False
        self._processes: set[int] = set()
        self._stopped = False
        self._may_have_run = False
        self._shown = 0
        self._end_by: float | None = None
        self._was_told = False

    def to_the_end(self) -> Ending:
        """Follow the command to its end."""
        with _signals_to(self._child):
            while self._child.poll() is None:
                self._look()
                self._end_if_due()
                with suppress(subprocess.TimeoutExpired):
                    self._child.wait(_POLL_S)
            self._look()
            self._take_unhooked(is_over=True)
        status = self._child.returncode
        if status < 0:
            status = 0 if self._stopped else 128 - status
        speaks = not self._processes or 0 in self._processes
        return Ending(status, self._stopped, self._was_watched, self._may_have_run, speaks)

    def _look(self) -> None:
        for path in sorted(self._dumps.glob("*.jsonl")):
            for facts in self._new_lines(path):
                self._take(facts)
        if not self._was_watched:
            self._take_unhooked(is_over=False)

    def _new_lines(self, path: Path) -> Iterator[dict[str, Any]]:
        """The events that a process wrote since the last look."""
        with path.open("rb") as stream:
            stream.seek(self._read.get(path, 0))
            whole, newline, _ = stream.read().rpartition(b"\n")
        self._read[path] = self._read.get(path, 0) + len(whole) + len(newline)
        for line in whole.splitlines():
            yield json.loads(line)

    def _take(self, facts: dict[str, Any]) -> None:
        if "file" not in facts:
            self._was_watched = True
            return
        found = Compiled(**facts)
        self._processes.add(found.process)
        if found.stops:
            self._ask_to_end(time.monotonic() + _GRACE_S)
        if not found.process:
            self._see(found, _whole(Path(found.file)))
        with suppress(OSError):
            os.unlink(found.file)

    def _take_unhooked(self, is_over: bool) -> None:
        """Programs of a process that did not load the watcher; a file is whole once there is a later one."""
        paths = sorted((self._dumps / _UNHOOKED).glob("*" + ENDING))
        for path in paths if is_over else paths[:-1]:
            if path in self._unhooked:
                continue
            self._unhooked.add(path)
            content = path.read_bytes()
            head = read_head(content.decode(errors="replace"))
            hidden = why_hidden(head, self._request, None)
            self._shown += not hidden
            self._see(Compiled(str(path), head.name, head.devices, hidden), content)
            if 0 < self._request.stop_after <= self._shown and not is_over and not self._stopped:
                self._may_have_run = True
                self._ask_to_end(time.monotonic())

    def _ask_to_end(self, by: float) -> None:
        self._stopped = True
        self._end_by = by if self._end_by is None else self._end_by

    def _end_if_due(self) -> None:
        """End a script that goes on although it was asked to end: first with a word, then without."""
        if self._end_by is None or time.monotonic() < self._end_by:
            return
        self._end_by = time.monotonic() + _GRACE_S
        with suppress(ProcessLookupError):
            (self._child.kill if self._was_told else self._child.terminate)()
        self._was_told = True


def _whole(path: Path) -> bytes:
    """The text of a dump, which another thread of the script may be writing yet."""
    for _ in range(_MOST_POLLS):
        content = path.read_bytes()
        last = content.rstrip(b"\n").rpartition(b"\n")[2]
        if content.endswith(b"\n") and (last == b"}" or last.startswith(b"#loc")):
            break
        time.sleep(_POLL_S)
    return content


@contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leave Ctrl-C to the script, which gets it from the terminal itself, and hand it what ends us."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def hand_on(number: int, _: Any) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    handlers = {signal.SIGINT: lambda *_: None, signal.SIGTERM: hand_on}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
