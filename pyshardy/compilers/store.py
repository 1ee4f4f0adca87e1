"""Keeps the answers of compilers in a cache folder, by content."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from platformdirs import user_cache_path

from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.plugins import Plugin
from pyshardy.compilers.process import Job
from pyshardy.compilers.target import CompilerTarget
from pyshardy.core.intern import register_cache

FOLDER = "PYSHARDY_CACHE_DIR"
"""The environment variable with the cache folder; if it is empty, nothing is kept."""
_MOST_BYTES = 1 << 30
"""The size of the cache: the answers that were not used for longest are deleted."""
_FORMAT = "1"
_FLAGS = ("XLA_FLAGS", "LIBTPU_INIT_ARGS")
_FILES = ("given", "partitioned")


_RECENT: dict[str, CompilerAnswer] = {}
"""The last answers of this process: one command asks several times."""
_MOST_RECENT = 8


def key_of(job: Job, plugin: Plugin) -> str:
    """The name of a job's answer: a hash of everything that the answer depends on."""
    facts = {
        "format": _FORMAT,
        "program": hashlib.sha256(job.program).hexdigest(),
        "target": asdict(job.target),
        "plugin": [plugin.label, plugin.library],
        "open": [job.open_inputs, job.open_outputs],
        "to_the_end": job.to_the_end,
        "options": job.options,
        "flags": {name: os.environ.get(name, "") for name in _FLAGS},
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def kept(key: str) -> CompilerAnswer | None:
    """An answer that was kept; None if there is none."""
    if key in _RECENT:
        return _RECENT[key]
    folder = _folder()
    path = None if folder is None else folder / key
    if path is None or not (path / "answer.json").is_file():
        return None
    try:
        facts = json.loads((path / "answer.json").read_text())
        os.utime(path)
        content = {name: (path / name).read_bytes() if (path / name).is_file() else None for name in _FILES}
        answer = CompilerAnswer(**{**facts, **content, "target": CompilerTarget(**facts["target"])})
    except (OSError, ValueError, TypeError, KeyError):  # another process deletes it, or it is not ours
        return None
    _remember(key, answer)
    return answer


def keep(key: str, answer: CompilerAnswer) -> None:
    """Keep an answer. A cache that cannot be written is left alone."""
    _remember(key, answer)
    folder = _folder()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(dir=folder, prefix="new-"))
        facts = {**{name: getattr(answer, name) for name in CompilerAnswer.__slots__}, "target": asdict(answer.target)}
        for name in _FILES:
            content = facts.pop(name)
            if content is not None:
                (new / name).write_bytes(content)
        (new / "answer.json").write_text(json.dumps(facts))
        try:
            new.rename(folder / key)
        except OSError:  # another process was faster
            shutil.rmtree(new, ignore_errors=True)
        _shrink(folder)
    except OSError:
        return


def forget_answers() -> None:
    """Delete all answers that are kept."""
    _RECENT.clear()
    folder = _folder()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


register_cache(forget_answers)


def _remember(key: str, answer: CompilerAnswer) -> None:
    _RECENT[key] = answer
    for oldest in list(_RECENT)[: max(0, len(_RECENT) - _MOST_RECENT)]:
        _RECENT.pop(oldest, None)


def _folder() -> Path | None:
    given = os.environ.get(FOLDER)
    if given == "":
        return None
    return (user_cache_path("pyshardy", appauthor=False) if given is None else Path(given)) / "answers"


def _shrink(folder: Path) -> None:
    """Delete the answers that were not used for longest, until the others are small enough."""
    entries = sorted((path for path in folder.iterdir()), key=lambda path: path.stat().st_mtime, reverse=True)
    total = 0
    for path in entries:
        total += sum(file.stat().st_size for file in path.iterdir())
        if total > _MOST_BYTES:
            shutil.rmtree(path, ignore_errors=True)
