"""Locks as text."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from pyshardy.errors import UsageError
from pyshardy.report.budgets import Budgets
from pyshardy.report.lock import (
    LOCK_VERSION,
    Lock,
    LockedCollective,
    LockedConstraint,
    LockedMesh,
    LockedTensor,
    folded,
    unfolded,
)
from pyshardy.report.lock_files import load_lock, parse_lock

TENSORS = [LockedTensor(f"w[{layer}]", "f32[8]", "P('x')", donated=layer < 11) for layer in range(12)]
LOCK = Lock(
    version=LOCK_VERSION,
    program="module @jit_step",
    pyshardy="1.0",
    jaxlib="0.12",
    sent_bytes=3 * 2**20,
    meshes=(LockedMesh("mesh", "x=2"),),
    constraints=(LockedConstraint("block", "f32[8]", "P('x')", 2),),
    inputs=folded(TENSORS),
    collectives=(LockedCollective("all_reduce", "x", "layers_0..2", "sum of dot_general", "f32[8]", 6, 96, layers=3),),
    budgets=Budgets("14GiB", no=("all_gather over x",)),
)


def test_what_is_written_is_read() -> None:
    assert parse_lock(LOCK.text()) == LOCK
    assert parse_lock(LOCK.text()).text() == LOCK.text()


def test_it_is_toml_that_a_person_reads() -> None:
    text = LOCK.text()
    assert '  { name = "w[0..10]", tensor = "f32[8]", sharding = "P(\'x\')", layers = 11, donated = true },\n' in text
    assert '  { name = "w[11]", tensor = "f32[8]", sharding = "P(\'x\')" },\n' in text
    assert "sent_bytes = 3145728  # 3.0 MiB\n" in text
    assert text.endswith('\n[budgets]\nmax_memory = "14GiB"\nno = ["all_gather over x"]\n')
    assert tomllib.loads(text)["budgets"] == {"max_memory": "14GiB", "no": ["all_gather over x"]}


@pytest.mark.parametrize("name", ["a\"b'c", "back\\slash", "line\nbreak\x7f\x00", "größe ×"])
def test_any_name_is_written(name: str) -> None:
    lock = Lock(LOCK_VERSION, name, "1", "1", inputs=(LockedTensor(name, "f32[]", "replicated"),))
    assert parse_lock(lock.text()) == lock


def test_rows_of_layers_are_folded_and_unfolded() -> None:
    rows = folded(reversed(TENSORS))
    assert [(row.name, row.layers) for row in rows] == [("w[0..10]", 11), ("w[11]", 1)]
    assert sorted(unfolded(rows), key=lambda row: int(row.name[2:-1])) == TENSORS
    (row,) = LOCK.collectives
    assert [(one.where, one.count, one.bytes) for one in unfolded([row])] == [
        (f"layers_{at}", 2, 32) for at in range(3)
    ]


def test_rows_are_sorted_by_numbers() -> None:
    names = ["b[10]", "b[9]", "a"]
    assert [row.name for row in folded(LockedTensor(name, "f32[]", "replicated") for name in names)] == [
        "a",
        "b[9]",
        "b[10]",
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        ("version = ", "text that is not TOML"),
        ("a = 1", "got no version, needed version 1"),
        ('version = "1"', "got version '1', needed version 1"),
        ("version = 1", "got no program, needed the fields"),
        ('version = 1\nprogram = 3\npyshardy = ""\njaxlib = ""', "got 3, needed text\n  at the text.program"),
        ('version = 1\nprogram = ""\npyshardy = ""\njaxlib = ""\nnews = 1', "the unknown field 'news'"),
        (LOCK.text().replace("layers = 11", "layers = 12"), "got 'w[0..10]' for 12 layers"),
        (LOCK.text().replace("count = 6", "count = 7"), "and figures that these share"),
        (LOCK.text().replace("14GiB", "much"), "got max_memory='much'"),
        (LOCK.text().replace("layers = 11", "layers = 0"), "got 'w[0..10]' for 0 layers"),
        (LOCK.text().replace("w[0..10]", "w[5..4]").replace("layers = 11", "layers = 0"), "got 'w[5..4]' for 0 layers"),
        (LOCK.text().replace("w[0..10]", "w[1..999999999]").replace("layers = 11", "layers = 999999999"), "for 999999999 layers"),
    ],
)  # fmt: skip
def test_other_texts_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_lock(text)
    assert said in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"no such file or directory, needed a file that can be read\n  try: pyshardy lock"
    ):
        load_lock(tmp_path / "nowhere")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="which is not text, needed what pyshardy lock writes"):
        load_lock(tmp_path / "bytes")
    with pytest.raises(UsageError, match="reading a lock: got an int, needed a path"):
        load_lock(3)  # type: ignore[arg-type]


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    LOCK.save(tmp_path / "a.lock")
    assert load_lock(tmp_path / "a.lock") == LOCK
    with pytest.raises(UsageError, match="writing"):
        LOCK.save(tmp_path / "nowhere" / "a.lock")
