"""`%%sharding` in a notebook: shows the programs that `jax.jit` compiles in a cell.

%load_ext pyshardy

%%sharding --only train_step --chip v5e
state, loss = train_step(state, batch)
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from pyshardy.errors import ShardyError
from pyshardy.watching.analysis import Wishes, analyse
from pyshardy.watching.calls import ModelNames, function_of_calls, names_of_calls, note_lowering
from pyshardy.watching.hidden import hidden_lines, listed
from pyshardy.watching.inside import ENDING, Request, folder_of_dumps, own_names, read_head, why_hidden
from pyshardy.watching.names import with_name, with_names

_NOTHING = (
    "no program was compiled in this cell: JAX keeps those that it compiled before; jax.clear_caches() forgets them"
)


def register(shell: Any) -> None:
    """Make `%%sharding` known to IPython.

    Args:
        shell: The shell, `IPython.core.interactiveshell.InteractiveShell`.
    """
    names = _Names()
    shell.register_magic_function(lambda line, cell: _sharding(shell, names, line, cell), "cell", "sharding")


class _Names:
    """The names that frameworks do not hand to JAX: while JAX compiles, the calls that know them are still running."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._found: dict[str, tuple[str, ModelNames]] = {}
        self._is_listening = False

    @contextmanager
    def collecting(self, folder: str, jax: Any) -> Iterator[None]:
        """Look at the running calls whenever JAX reports an event and there is a new dump."""
        if not self._is_listening:  # `jax.monitoring` keeps what is registered
            self._is_listening = True
            jax.monitoring.register_event_listener(self._look)
            jax.monitoring.register_event_duration_secs_listener(self._look)
        self._folder, self._found = Path(folder), {}
        try:
            yield
        finally:
            self._folder = None

    def named(self, path: Path) -> bytes:
        """A dump with these names."""
        content = path.read_bytes()
        name, names = self._found.get(path.name, ("", {}))
        return with_name(with_names(content, names), name)

    def _look(self, event: str, *_: Any, **facts: Any) -> None:
        with suppress(Exception):  # whatever happens here, the cell goes on
            note_lowering(event, facts.get("fun_name", ""))
            for path in sorted(self._folder.glob("*" + ENDING)) if self._folder is not None else ():
                if path.name not in self._found:
                    text = path.read_text(errors="replace")
                    self._found[path.name] = function_of_calls(read_head(text).name), names_of_calls(text)


class _Parser(argparse.ArgumentParser):
    """A parser that reports a wrong line as IPython reports it, without a traceback."""

    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError

        raise UsageError(f"reading %%sharding: {message}; try: %%sharding --only NAME --chip v5e")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="%%sharding", add_help=False, allow_abbrev=False)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--chip", "--hardware", dest="hardware", default="")
    parser.add_argument("--compiler")
    parser.add_argument("--by", choices=("scope", "line"), default="")
    return parser


def _sharding(shell: Any, names: _Names, line: str, cell: str) -> None:
    """Run a cell, and show the programs that were compiled in it."""
    import jax
    from IPython.display import display

    arguments = _parser().parse_args(shlex.split(line))
    request = Request("", tuple(arguments.only), arguments.all)
    wishes = Wishes(arguments.hardware, arguments.compiler, arguments.by)
    device = jax.local_devices()[0]
    hidden: Counter[tuple[str, str]] = Counter()
    shown = 0
    with tempfile.TemporaryDirectory(prefix="pyshardy-") as folder:
        with _dumping_to(folder, jax.config), names.collecting(folder, jax):
            shell.run_cell(cell, store_history=False)
        for path in sorted(Path(folder).glob("*" + ENDING)):
            content = names.named(path)
            head = read_head(content.decode(errors="replace"))
            why = why_hidden(head, request, own_names(jax))
            if why:
                hidden[head.name, why] += 1
                continue
            shown += 1
            try:
                display(analyse(content, head.name, wishes, device.platform, device.device_kind))
            except ShardyError as error:
                print(f"{head.name} is not shown: {error}", file=sys.stderr)
    for told in hidden_lines(listed(hidden), bool(arguments.only)):
        print(told)
    if not shown and not hidden:
        print(_NOTHING)


@contextmanager
def _dumping_to(folder: str, config: Any) -> Iterator[None]:
    """Let JAX dump its programs, with names and lines, to a folder."""
    before = folder_of_dumps(config)
    config.update("jax_dump_ir_to", folder)
    try:
        yield
    finally:
        config.update("jax_dump_ir_to", before)
