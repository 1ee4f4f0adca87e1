"""Assertions for tests of programs that run on several devices."""

from __future__ import annotations

import os
from collections.abc import Iterable
from os import PathLike, fspath
from typing import Any

from pyshardy.api.load import load
from pyshardy.api.lock import check, write_lock
from pyshardy.api.propagate import PropagateKeywords
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.budgets import Budgets

UPDATE = "PYSHARDY_UPDATE_LOCK"
"""The environment variable that makes `assert_sharding` write locks; the option `--update-lock` of pytest sets it."""
_DOING = "asserting shardings"


def assert_sharding(
    step: Any,
    args: Iterable[Any] = (),
    *,
    lock: str | PathLike[str],
    compiler: str | None = None,
    hardware: str | None = None,
    budgets: Budgets | None = None,
    **keywords: Any,
) -> None:
    """Assert that a program is sharded, communicates and uses memory as its lock says, and keeps its budgets.

    With `pytest --update-lock`, or where the environment variable `PYSHARDY_UPDATE_LOCK` is set, the lock is written
    instead. Budgets are enforced even then, and those of the lock are kept.

    Args:
        step: A function, jitted or not, or anything else that `load` takes.
        args: The arguments of a function: arrays or `jax.ShapeDtypeStruct`s.
        lock: The file of the lock. A relative path is one from the current directory, so tests begin it with
            `Path(__file__).parent`.
        compiler: The compiler to ask, such as "tpu:v5e:2x4"; by default that of the lock.
        hardware: The chip that the peak memory is estimated for; by default that of the lock.
        budgets: Budgets beside those of the lock; they are not written to it.
        keywords: What `load` takes too, such as `mesh` and `in_shardings`.

    Raises:
        AssertionError: The program differs from the lock, with the diff; there is no lock; or a budget is broken.
        UsageError: The program cannot be loaded, or the file holds no lock.

    >>> import pathlib, tempfile
    >>> text = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   return %a : tensor<8xf32>
    ... }'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "step.lock")
    ...     _ = write_lock(text, path)
    ...     assert_sharding(text, lock=path)
    """
    if not isinstance(lock, (str, PathLike)):
        raise UsageError(_DOING, got=f"{named_type(lock)} as the lock", needed="a path")
    path, is_update = fspath(lock), bool(os.environ.get(UPDATE))
    if not is_update and not os.path.exists(path):
        raise AssertionError(f"there is no lock {path}: `pytest --update-lock` writes it")
    module = load(step, *args, **keywords)
    options: PropagateKeywords = {} if compiler is None else {"compiler": compiler}
    if is_update:
        write_lock(module, path, hardware=hardware, **options)
    name = getattr(step, "__name__", None) or "the program"
    found = check(module, path, hardware=hardware, budgets=budgets, name=name, **options)
    if not found:
        raise AssertionError(f"{found}\n`pytest --update-lock` accepts what differs" if found.differs else str(found))
