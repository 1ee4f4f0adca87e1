"""`pyshardy lock`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyshardy.report.lock_files import load_lock, parse_lock

from .command_line import Cli

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"


def test_a_lock_is_printed_or_written(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mlp.lock"
    printed, written = cli("lock", MLP), cli("lock", MLP, "-o", path)
    assert (printed.status, printed.err, written) == (0, "", (0, "", ""))
    assert path.read_text() == printed.out == cli("lock", MLP, "-o", "-").out
    assert [row.sharding for row in load_lock(path).inputs] == ["P(None, 'model')", "P('model')", "P('data')"]


def test_as_json(cli: Cli) -> None:
    found = json.loads(cli("lock", MLP, "--json").out)
    assert found["inputs"][2] == {
        "name": "x", "tensor": "f32[32, 64]", "sharding": "P('data')", "layers": 1, "donated": False, "annotated": True,
    }  # fmt: skip
    assert (found["compiler"], found["chip"], found["collectives"][0]["kind"]) == ("none", "v5p", "all_reduce")


@pytest.mark.slow
def test_the_example_in_any_size(cli: Cli) -> None:
    lock = parse_lock(cli("lock", "example", "--layers", "3", "--width", "64", "--vocabulary", "64").out)
    assert "params['layers'][0..2]['w1']" in [row.name for row in lock.inputs]


def test_budgets_and_a_chip_are_kept(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "mlp.lock"
    given = (
        "--max-memory",
        "14GiB",
        "--max-bytes",
        "2GB",
        "--no",
        "all_gather over model in decoder/*",
        "--no",
        "all_to_all",
    )
    assert cli("lock", MLP, "-o", path, "--hardware", "h100", *given).err == ""
    first = path.read_text()
    assert cli("lock", MLP, "-o", path).status == 0
    assert path.read_text() == first and load_lock(path).chip == "h100"
    cli("lock", MLP, "-o", path, "--max-memory", "16GiB", "--no", "all_gather")
    budgets = load_lock(path).budgets
    assert (budgets.max_memory, budgets.max_bytes) == ("16GiB", "2GB")
    assert budgets.no == ("all_gather over model in decoder/*", "all_to_all", "all_gather")


def test_a_broken_budget_is_a_warning(cli: Cli, tmp_path: Path) -> None:
    found = cli("lock", MLP, "-o", tmp_path / "a.lock", "--max-bytes", "1kB")
    assert found.status == 0
    assert found.err == "warning: a budget is broken: bytes sent per device: 2.0 KiB, and 1kB are allowed\n"


@pytest.mark.parametrize("content, got", [("x = 1\n", "got no version"), ("module {}\n", "text that is not TOML")])
def test_nothing_else_is_overwritten(cli: Cli, tmp_path: Path, content: str, got: str) -> None:
    path = tmp_path / "mine"
    path.write_text(content)
    found = cli("lock", MLP, "-o", path)
    assert (found.status, found.out) == (2, "") and f"error: writing a lock over {path}: " in found.err
    assert got in found.err and path.read_text() == content


def test_a_golden_file_of_maxtext_is_not_overwritten(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "named_shardings.json"
    path.write_text('{".step": {"mesh": {"axis_names": ["x"], "shape": {"x": 2}}, "partition_spec": []}}')
    found = cli("lock", MLP, "-o", path)
    assert found.status == 2 and "got a lock of inputs alone, needed a new file" in found.err


@pytest.mark.parametrize(
    "options, said",
    [
        (("--max-memory", "much"), "reading a budget: got max_memory='much', needed bytes as text"),
        (("--no", "all gather"), "reading a budget: got no='all gather', needed KIND"),
        (("--no-replication",), "locking a program: got no_replication without a compiler"),
        (("--hardware", "h1000"), "h1000"),
    ],
)
def test_what_is_refused(cli: Cli, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    found = cli("lock", MLP, "-o", tmp_path / "a.lock", *options)
    assert (found.status, found.out) == (2, "") and said in found.err
    assert not (tmp_path / "a.lock").exists()
