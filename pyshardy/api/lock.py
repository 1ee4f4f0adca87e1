"""The public functions that write the lock of a program, and compare another program with it."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath
from pathlib import Path
from types import NoneType
from typing import Any, Unpack

from pyshardy.api.cost import cost
from pyshardy.api.partition import partition
from pyshardy.api.propagate import PropagateKeywords, propagate
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.report.budgets import Budgets
from pyshardy.report.lock import Lock
from pyshardy.report.lock_changes import compare_locks, is_other_peak, totals_of
from pyshardy.report.lock_difference import LockDifference
from pyshardy.report.lock_files import load_lock
from pyshardy.results.cost import chip_of_partition
from pyshardy.results.lock_reasons import explained
from pyshardy.results.locked import Locked
from pyshardy.results.partition import Partition
from pyshardy.results.verbs import Result

_LOCKING, _CHECKING = "locking a program", "checking a program"


def lock(
    program: Any,
    *,
    hardware: str | Path | None = None,
    budgets: Budgets | None = None,
    **keywords: Unpack[PropagateKeywords],
) -> Lock:
    """The lock of a program: what is to be reviewed when its shardings, its collectives or its memory change.

    Args:
        program: A result of `propagate` or `partition`, or anything that `load` takes.
        hardware: The chip that the peak memory is estimated for, as for `cost`.
        budgets: What the program may take; `check` enforces it.
        keywords: The options for a program that is not propagated yet, as for `propagate`.

    Raises:
        UsageError: The program cannot be loaded, an option is unknown, or a budget needs a compiler.
        ShardyError: The program cannot be partitioned.

    >>> text = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> found = lock(text)
    >>> found.inputs[0].sharding, found.outputs[0].sharding, found.collectives
    ("P('x')", "P('x')", ())
    >>> bool(check(text, found))
    True
    """
    return _locked(program, hardware, _budgets(budgets, _LOCKING), keywords, _LOCKING).lock


def check(
    program: Any,
    lock: Lock | str | PathLike[str],
    *,
    hardware: str | Path | None = None,
    budgets: Budgets | None = None,
    name: str = "the program",
    **keywords: Unpack[PropagateKeywords],
) -> LockDifference:
    """Compare a program with a lock, and enforce its budgets.

    Args:
        program: As for `lock`. The compiler is that of the lock, unless a keyword names one or the program is a result.
        lock: The lock, or its file; also a golden file of MaxText, a lock of inputs.
        hardware: The chip that the peak memory is estimated for; by default that of the lock.
        budgets: Budgets beside those of the lock.
        name: What to call the program.
        keywords: The options for a program that is not propagated yet.

    Returns:
        The comparison, which is true if nothing differs and no budget is broken; `str` gives the diff.

    Raises:
        UsageError: The lock cannot be read, the program cannot be loaded, or a budget needs a compiler.
        ShardyError: The program cannot be partitioned.

    >>> text = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> found = check(text.replace('[{"x"}]', '[{}]'), lock(text))
    >>> for change in found.changes:
    ...     print(change.name, *change.before, *change.after, sep=", ")
    arg0, f32[8] P('x') (annotated), f32[8] replicated
    result, f32[8] P('x'), f32[8] replicated
    """
    if isinstance(lock, (str, PathLike)):
        lock_name, lock = fspath(lock), load_lock(lock)
    elif isinstance(lock, Lock):
        lock_name = "the lock"
    else:
        raise UsageError(_CHECKING, got=f"{named_type(lock)} as the lock", needed="a lock, or a path")
    if not isinstance(program, Result) and keywords.get("compiler") is None:
        keywords = {**keywords, "compiler": lock.compiler}
    given = lock.budgets if budgets is None else lock.budgets.and_(_budgets(budgets, _CHECKING))
    locked = _locked(program, hardware or lock.chip or None, given, keywords, _CHECKING)
    part, found = locked.partition, locked.lock
    return LockDifference(
        name=name,
        lock_name=lock_name,
        lock=lock,
        found=found,
        changes=explained(locked, compare_locks(lock, found)),
        totals=totals_of(lock, found),
        other_peak=is_other_peak(lock, found),
        broken=tuple(given.broken(found.peak_bytes, part.traffic, part.replications)),
        notes=tuple(_notes(lock, found)),
    )


def write_lock(
    program: Any,
    path: str | PathLike[str],
    *,
    hardware: str | Path | None = None,
    budgets: Budgets | None = None,
    **keywords: Unpack[PropagateKeywords],
) -> Lock:
    """Write the lock of a program to a file; return the lock.

    If the file is a lock already, its budgets, and unless others are given its compiler and chip, are kept.

    Args:
        program: As for `lock`.
        path: The file.
        hardware: As for `lock`.
        budgets: Budgets beside those of the file.
        keywords: As for `lock`.

    Raises:
        UsageError: As for `lock`; or the file holds something else than a lock, or cannot be written.
        ShardyError: The program cannot be partitioned.
    """
    given = _budgets(budgets, _LOCKING)
    known = known_lock(path)
    if known is not None:
        given, hardware = known.budgets.and_(given), hardware or known.chip
        if not isinstance(program, Result) and keywords.get("compiler") is None:
            keywords = {**keywords, "compiler": known.compiler}
    found = _locked(program, hardware, given, keywords, _LOCKING).lock
    found.save(path)
    return found


def known_lock(path: str | PathLike[str]) -> Lock | None:
    """The lock in a file that a lock is to be written to; None if it is not there, or empty.

    Raises:
        UsageError: The file holds something else than what `pyshardy lock` writes.
    """
    if not isinstance(path, (str, PathLike)):
        raise UsageError(_LOCKING, got=f"{named_type(path)} as the file", needed="a path")
    file = Path(path)
    if not file.is_file() or not file.stat().st_size:
        return None
    doing = f"writing a lock over {file}"
    try:
        found = load_lock(file)
    except UsageError as error:
        raise error.located(doing) from error
    if found.covers != "all":
        raise UsageError(doing, got="a lock of inputs alone", needed="a new file, or what pyshardy lock wrote")
    return found


def _locked(
    program: Any, hardware: str | Path | None, budgets: Budgets, keywords: PropagateKeywords, doing: str
) -> Locked:
    is_done = isinstance(program, Partition) and not keywords
    part = program if is_done else partition(propagate(program, **keywords))
    if budgets.no_replication and part.answer is None:
        hint = "--compiler tpu:v5e:2x4, or remove no_replication"
        raise UsageError(doing, got="no_replication without a compiler", needed="a compiler to ask", hint=hint)
    estimate = cost(part, hardware).estimate
    return Locked(part, estimate.memory, str(hardware or chip_of_partition(part)), budgets)


def _budgets(budgets: Budgets | None, doing: str) -> Budgets:
    """The budgets of an argument."""
    if not isinstance(budgets, (Budgets, NoneType)):
        raise UsageError(doing, got=f"{named_type(budgets)} as budgets", needed="pyshardy.Budgets")
    return budgets or Budgets()


def _notes(lock: Lock, found: Lock) -> Sequence[str]:
    """What else may make a difference: other versions, another compiler, another chip."""
    notes = []
    if lock.covers == "all":
        for what in ("pyshardy", "jaxlib"):
            one, other = getattr(lock, what), getattr(found, what)
            if one != other:
                notes.append(f"the lock is from {what} {one}, this is {what} {other}: what differs may come from that")
        one, other = (side.compiled_by or "XLA for CPUs, as pyshardy knows it" for side in (lock, found))
        if one != other:
            notes.append(f"the lock is as compiled by {one}, this is by {other}: what differs may come from that")
        if lock.chip != found.chip:
            notes.append(f"the peak memory of the lock is for {lock.chip}, this is for {found.chip}")
    return notes
