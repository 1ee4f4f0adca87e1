"""Answers that are kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyshardy.compilers import store
from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.plugins import Plugin
from pyshardy.compilers.process import Job
from pyshardy.compilers.target import find_target
from pyshardy.core.intern import clear_caches

TARGET = find_target("cuda:h100", 8)
ANSWER = CompilerAnswer(TARGET, "plugin 1", b"given", "decided", b"partitioned", "log", memory={"temp": 3}, seconds=1.5)
JOB = Job(b"program", TARGET, (True,), (False,))
PLUGIN = Plugin("cuda", "plugin 1", "/plugin.so")


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(store.FOLDER, str(tmp_path))
    monkeypatch.setattr(store, "_MOST_RECENT", 0)  # only the folder keeps answers


def test_an_answer_comes_back() -> None:
    assert store.kept("key") is None
    store.keep("key", ANSWER)
    assert store.kept("key") == ANSWER
    bare = replace(ANSWER, partitioned=None, error="why", memory=None)
    store.keep("other", bare)
    assert store.kept("other") == bare


def test_a_process_remembers_its_last_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.FOLDER, "")
    monkeypatch.setattr(store, "_MOST_RECENT", 2)
    for number in range(3):
        store.keep(f"recent {number}", ANSWER)
    assert [store.kept(f"recent {number}") for number in range(3)] == [None, ANSWER, ANSWER]
    clear_caches()
    assert store.kept("recent 2") is None


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.FOLDER, "")
    store.keep("key", ANSWER)
    assert store.kept("key") is None


def test_a_broken_answer_is_none(tmp_path: Path) -> None:
    store.keep("key", ANSWER)
    (tmp_path / "answers" / "key" / "answer.json").write_text("{")
    assert store.kept("key") is None


def test_all_caches_are_cleared(tmp_path: Path) -> None:
    store.keep("key", ANSWER)
    clear_caches()
    assert store.kept("key") is None
    assert not (tmp_path / "answers").exists()


def test_the_cache_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MOST_BYTES", 5000)
    for number in range(8):
        store.keep(f"key {number}", replace(ANSWER, given=bytes(2000)))
    kept = [number for number in range(8) if store.kept(f"key {number}") is not None]
    assert len(kept) == 2


def test_a_key_depends_on_all_that_an_answer_depends_on(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [
        store.key_of(JOB, PLUGIN),
        store.key_of(replace(JOB, program=b"other"), PLUGIN),
        store.key_of(replace(JOB, target=find_target("cuda:a100", 8)), PLUGIN),
        store.key_of(replace(JOB, open_inputs=(False,)), PLUGIN),
        store.key_of(replace(JOB, to_the_end=True), PLUGIN),
        store.key_of(JOB, Plugin("cuda", "plugin 2", "/plugin.so")),
    ]
    monkeypatch.setenv("XLA_FLAGS", "--xla_other")
    keys.append(store.key_of(JOB, PLUGIN))
    assert len(set(keys)) == len(keys)
    assert store.key_of(JOB, PLUGIN) == keys[-1]
