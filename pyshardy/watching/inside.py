"""Runs inside a watched script: says which programs JAX compiles, and ends the script before one of them runs.

`pyshardy watch` copies this file to `jax_plugins/pyshardy_watch.py` in a folder on the script's path, and `calls.py` to
`pyshardy_watch_calls.py` beside `jax_plugins`. JAX imports the
modules of the namespace package `jax_plugins` and calls their `initialize()` before it makes devices, whoever starts
the script. The rest is `jax.config` and `jax.monitoring`. The script's Python need not have pyshardy, so this file
imports nothing but the standard library and JAX.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

WATCH_VARIABLE = "PYSHARDY_WATCH"
"""The environment variable with a `Request`, as JSON."""
ENDING = "_compile.mlir"
"""How the names of JAX's dumps of compiled programs end."""
FEW_OPS = 10
"""A function of JAX itself with fewer ops is called small."""
ONE_DEVICE, NOT_ASKED = "on one device", "not asked for by --only"
SMALL, OWN = f"JAX's own, of fewer than {FEW_OPS} ops", "JAX's own"
"""Why a program is not shown."""

_NAME = re.compile(r"^module @(?:\"([^\"\n]*)\"|([\w.$-]+))(.*)$", re.MULTILINE)
_COUNT = re.compile(r"mhlo\.num_(?:partitions|replicas) = (\d+)")
_OP = re.compile(r"^ +(?:%\S+ = )?\"?(?:stablehlo|chlo|mhlo)\.(?!constant|return)", re.MULTILINE)
_KINDS = ("jit_", "pmap_", "pjit_")
_PARTS = ("numpy", "lax", "random", "nn")
_OTHERS = {"identity_fn", "multi_slice", "normal_real", "threefry_seed", "threefry_split", "threefry_fold_in", "stage"}
"""Functions behind public ones, by which their programs are named."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a watched script is asked for.

    Attributes:
        folder: Where every process writes its events and dumps.
        only: The patterns of names of programs to show; all without one.
        everything: Whether small programs and those on one device are shown, too.
        stop_after: End the script before this many of the shown programs have run; 0 for never.
        devices: The number of CPU devices that it sees; 0 for its own.
    """

    folder: str
    only: tuple[str, ...] = ()
    everything: bool = False
    stop_after: int = 0
    devices: int = 0

    def text(self) -> str:
        """The request as JSON."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Head:
    """What the text of a program says at its top.

    Attributes:
        name: The name of the module, such as "jit_step".
        devices: The number of devices that it runs on.
        is_short: Whether it has fewer than `FEW_OPS` ops.
    """

    name: str
    devices: int
    is_short: bool


def read_head(text: str) -> Head:
    """What the text of a program says at its top.

    >>> read_head("module @jit_step attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {")
    Head(name='jit_step', devices=8, is_short=True)
    """
    found = _NAME.search(text)
    devices = 1
    for count in _COUNT.findall(found[3] if found else ""):
        devices *= int(count)
    ops = sum(1 for _ in islice(_OP.finditer(text), FEW_OPS))
    return Head((found[1] or found[2]) if found else "", devices, ops < FEW_OPS)


def is_asked_for(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a program's name is one of those asked for, with or without "jit_".

    >>> is_asked_for("jit_train_step", ("train_*",)), is_asked_for("jit_init", ("train_step",))
    (True, False)
    """
    names = [name, *(name[len(kind) :] for kind in _KINDS if name.startswith(kind))]
    return any(fnmatchcase(one, pattern) for one in names for pattern in patterns)


def why_hidden(head: Head, request: Request, own: Container[str] | None) -> str:
    """Why a program is not shown; empty if it is.

    Args:
        head: What its text says.
        request: What is asked for.
        own: The names of JAX's own functions; None if unknown, so that the number of ops alone decides.

    >>> step = Head("jit_add", 8, True)
    >>> why_hidden(step, Request(""), {"add"}), why_hidden(step, Request("", only=("add",)), {"add"})
    ("JAX's own, of fewer than 10 ops", '')
    >>> why_hidden(Head("jit__truncated_normal", 8, False), Request(""), {"truncated_normal"})
    "JAX's own"
    """
    if request.only:
        return "" if is_asked_for(head.name, request.only) else NOT_ASKED
    if request.everything:
        return ""
    if head.devices < 2:
        return ONE_DEVICE
    function = head.name.removeprefix("jit_")
    name = function.lstrip("_")
    if function != name and own is not None and name in own:
        return OWN  # such as `_truncated_normal` behind `jax.random.truncated_normal`
    is_own = own is None or name in own
    return SMALL if head.is_short and is_own else ""


def own_names(jax: Any) -> set[str]:
    """The names of JAX's own functions, whose programs are those of single calls outside of `jit`.

    Args:
        jax: The module `jax`.
    """
    names = [name for part in _PARTS for name in dir(getattr(jax, part, None))]
    return {name.removesuffix("_p") for name in names if len(name) > 1} | _OTHERS  # a function `f` is the user's


class Watcher:
    """Looks for new dumps whenever JAX reports an event, which it does before and after it compiles.

    Args:
        request: What is asked for.
        jax: The module `jax`.
        calls: The module `calls`, which knows names that frameworks do not hand to JAX; None for none.
    """

    def __init__(self, request: Request, jax: Any, calls: Any = None) -> None:
        self._request = request
        self._jax = jax
        self._calls = calls
        self._lock = threading.RLock()
        self._own_names = own_names(jax)
        self._begin()

    def _begin(self) -> None:
        """Start to watch in this process, which may be a fork of a watched one."""
        self._dumps = Path(self._request.folder) / f"{os.getpid()}"
        self._seen: set[str] = set()
        self._shown = 0
        config = self._jax.config
        given = Path(folder_of_dumps(config))
        is_ours = given == Path() or given.parent == self._dumps.parent
        self._theirs = None if is_ours else given  # they get their dumps, too
        config.update("jax_dump_ir_to", str(self._dumps))
        self._say(started=True, time=time.time())

    def configure(self) -> None:
        """Set what the request needs of JAX."""
        wanted: dict[str, Any] = {"jax_include_debug_info_in_dumps": True, "jax_dump_ir_modes": "stablehlo"}
        if self._request.devices:
            wanted |= {"jax_platforms": "cpu", "jax_num_cpu_devices": self._request.devices}
        if self._request.stop_after and not self._jax.config.jax_compilation_cache_dir:
            # with a cache, JAX reports an event between the dump and the compilation; nothing is kept in it
            cache = str(Path(self._request.folder) / "cache")
            wanted |= {"jax_compilation_cache_dir": cache, "jax_persistent_cache_min_compile_time_secs": 1e9}
        for name, value in wanted.items():
            with suppress(AttributeError):  # versions of JAX without it
                self._jax.config.update(name, value)
        os.register_at_fork(after_in_child=self._begin)

    def look(self, event: str, *_: Any, **facts: Any) -> None:
        """Say which programs are new.

        Raises:
            SystemExit: As many programs were seen as were asked for; this one does not run.
        """
        try:
            if self._calls is not None:
                self._calls.note_lowering(event, facts.get("fun_name", ""))
            with self._lock:
                is_enough = max(map(self._take, self._new()), default=False)  # all are taken
        except Exception as error:  # whatever happens here, the script goes on
            with suppress(OSError):
                self._say(failed=repr(error))
            return
        if is_enough:
            raise SystemExit(0)

    def _new(self) -> list[str]:
        try:
            names = os.listdir(self._dumps)
        except OSError:  # nothing was compiled yet
            return []
        return sorted(name for name in names if name.endswith(ENDING) and name not in self._seen)

    def _take(self, name: str) -> bool:
        """Report a program; return whether the script is to end now."""
        self._seen.add(name)
        path = self._dumps / name
        try:
            text = path.read_text(errors="replace")
            head = read_head(text)
            if self._calls is not None:
                head = replace(head, name=self._calls.function_of_calls(head.name))
            if self._theirs is not None:
                self._theirs.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, self._theirs / name)
        except OSError:
            return False
        hidden = why_hidden(head, self._request, self._own_names)
        self._shown += not hidden
        is_enough = not hidden and 0 < self._request.stop_after <= self._shown
        jax = self._jax
        device = jax.local_devices()[0]
        self._say(
            file=str(path), name=head.name, devices=head.devices, hidden=hidden, process=jax.process_index(),
            platform=device.platform, kind=device.device_kind, stops=is_enough, jax=jax.__version__,
            names={} if hidden or self._calls is None else self._calls.names_of_calls(text),
        )  # fmt: skip
        return is_enough

    def _say(self, **facts: Any) -> None:
        with open(f"{self._dumps}.jsonl", "a", encoding="utf-8") as events:
            events.write(json.dumps(facts) + "\n")


def folder_of_dumps(config: Any) -> str:
    """Where JAX dumps to; empty if that is unknown."""
    try:
        return str(config.read("jax_dump_ir_to") or "")
    except Exception:  # flags are read otherwise in a version to come
        return os.environ.get("JAX_DUMP_IR_TO", "")


def initialize() -> None:
    """Start to watch, if this process was started by `pyshardy watch`; JAX calls this."""
    text = os.environ.get(WATCH_VARIABLE)
    if not text:
        return
    import jax
    import pyshardy_watch_calls as calls  # type: ignore[import-not-found]  # a copy of calls.py

    facts = json.loads(text)
    watcher = Watcher(Request(**{**facts, "only": tuple(facts["only"])}), jax, calls)
    watcher.configure()
    jax.monitoring.register_event_listener(watcher.look)
    jax.monitoring.register_event_duration_secs_listener(watcher.look)
