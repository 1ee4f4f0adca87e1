"""Tables of models of published packages, with many layers, at 80 columns and at 200."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import pyshardy
from pyshardy.report.printing import TableOptions, plain_text
from pyshardy.report.tables import partition_tables, summary_tables
from pyshardy.source.places import is_library
from support.tables import column, tables_in

from .base import Program
from .layers import LAYERS, MODELS

pytestmark = pytest.mark.filterwarnings("ignore")  # the packages warn of each other and of jax
THIS = Path(__file__).parent / "layers.py"


@dataclass(frozen=True)
class Sharded:
    """A model, propagated and partitioned."""

    propagation: pyshardy.Propagation
    partition: pyshardy.Partition


@cache
def sharded(name: str) -> Sharded:
    """The model of a name, or a skipped test if a package is not installed."""
    model: Program = MODELS[name]
    if model.missing():
        pytest.skip("needs published packages, which `make test-packages` installs")
    module = pyshardy.load(model.lower())
    propagation = pyshardy.propagate(module)
    return Sharded(propagation, pyshardy.partition(propagation))


def widest(text: str, width: int) -> int:
    """The longest line but those that are one name which is longer than the width."""
    return max(len(line) for line in text.splitlines() if " " in line or len(line) <= width)


def is_name_of(shown: str, name: str) -> bool:
    """Whether a table shows a name, or its start and its end."""
    start, cut, end = shown.partition("…")
    return shown == name or (cut != "" and name.startswith(start) and name.endswith(end))


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", MODELS)
def test_layers_share_a_row_and_nothing_is_cut(name: str, width: int) -> None:
    found = sharded(name)
    summary = found.propagation.summary
    text = plain_text(summary_tables(summary), width)
    assert widest(text, width) <= width
    rows = tables_in(text)["inputs"]
    assert len(rows) < len(summary.inputs) / 5
    assert sum(int(row[""][1:] or 1) if row[""] else 1 for row in rows) == len(summary.inputs)
    assert {row[""] for row in rows} & {f"×{LAYERS}"}
    assert "P(None, 'model')" in {row["sharding"] for row in rows} or "P('model')" in {row["sharding"] for row in rows}
    unfolded = plain_text(summary_tables(summary, TableOptions(unfold=True)), width)
    shown = column(unfolded, "inputs", "name")
    assert len(shown) == len(summary.inputs)
    assert all(is_name_of(short, row.name) for short, row in zip(shown, summary.inputs, strict=True))
    assert widest(unfolded, width) <= width


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("name", MODELS)
def test_collectives_of_all_layers_share_a_row_at_the_line_of_the_model(name: str, width: int) -> None:
    found = sharded(name)
    traffic = found.partition.traffic
    text = plain_text(partition_tables(found.propagation.summary, traffic), width)
    assert max(map(len, text.splitlines())) <= width
    rows = tables_in(text)["collectives"]
    assert len(rows) < len(traffic.collectives) / 5
    assert any(row[""] and int(row[""][1:]) % LAYERS == 0 for row in rows)  # like rows of a width are added up
    innermost = {row.source[0] for row in traffic.collectives if row.source is not None}
    assert any(map(is_library, innermost))  # that is what the package calls
    ours = {row.user_source[0] for row in traffic.collectives if row.user_source is not None}
    assert ours == {str(THIS)}
    assert all(row["source"].partition(" ")[0].rpartition(":")[0].endswith(THIS.name) for row in rows if row["source"])


def test_a_wrong_name_is_noticed() -> None:
    assert is_name_of("params.w", "params.w") and is_name_of("par….w", "params.w")
    assert not is_name_of("params.v", "params.w") and not is_name_of("par….v", "params.w")


def test_a_line_that_is_too_wide_is_noticed() -> None:
    assert widest(f"a b\n{'c' * 90}\n{'d' * 60} {'e' * 60}", 80) == 121


@pytest.mark.parametrize("name", MODELS)
def test_a_pipe_loses_no_name(name: str, tmp_path: Path) -> None:
    found = sharded(name)
    (tmp_path / "model.mlir").write_text(found.propagation.before.text(debug_info=True))
    run: Callable[..., str] = lambda *args, **options: subprocess.run(  # noqa: E731
        [sys.executable, "-m", "pyshardy.cli.main", *args], check=True, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "COLUMNS": "200"}, cwd=Path(__file__).parents[2], **options,
    ).stdout  # fmt: skip
    direct = run("show", str(tmp_path / "model.mlir"))
    piped = run("show", "-", input=run("propagate", str(tmp_path / "model.mlir")))
    for title in ("inputs", "outputs"):
        assert column(piped, title, "name") == column(direct, title, "name")
        assert column(piped, title, "sharding") == column(direct, title, "sharding")
