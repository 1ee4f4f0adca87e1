"""Patches of tables of regular expressions and specs."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.patching.table_specs import table_patch
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.named_values import sharding_of

TABLE = """\
from jax.sharding import PartitionSpec as PS

RULES = (
    ("o_proj/kernel", PS("model")),
    (".*", PS()),
)
"""
NAMES = (
    "params['h']['0']['q_proj']['kernel']",
    "params['h']['1']['q_proj']['kernel']",
    "params['h']['0']['o_proj']['kernel']",
)


def patched(source: str, changed: dict[int, tuple[tuple[str, ...], ...]]) -> str:
    Path("table.py").write_text(source)
    inputs = [InterfaceTensor(name, index, (8, 8), "f32", None) for index, name in enumerate(NAMES)]
    patch = table_patch(["table.py"], inputs, changed)
    return "".join(apply_patch(source.splitlines(keepends=True), patch)) if patch else ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_pair_is_put_before_the_others() -> None:
    text = patched(TABLE, {0: ((), ("model",)), 1: ((), ("model",))})
    assert 'RULES = (\n    ("q_proj/kernel", PS(None, "model")),\n    ("o_proj/kernel"' in text


def test_there_is_no_patch_for_one_layer_or_without_a_table() -> None:
    assert patched(TABLE, {0: ((), ("model",))}) == ""
    assert (
        patched(TABLE.replace('("o_proj/kernel", PS("model")),', ""), {0: ((), ("model",)), 1: ((), ("model",))}) == ""
    )


MATCHED = """\
RULES = [
    (r"layer_\\d+/up/kernel", P("fsdp", "tensor")),
    (r"layer_\\d+/down/kernel", P("tensor", "fsdp")),
]


def spec_of(path):
    return next((spec for pattern, spec in RULES if re.match(pattern, path)), P())
"""


def test_expressions_that_are_matched_from_the_start_are_searched(tmp_path: Path) -> None:
    """The path of optimizer state has more in front. It is so only if all inputs then have what they should have."""
    file = tmp_path / "rules.py"
    file.write_text(MATCHED)
    names = ["params['layer_0']['up']['kernel']", "state[0].mu['layer_0']['up']['kernel']", "state[0].count"]
    inputs = [InterfaceTensor(name, place, (8, 8), "f32", None) for place, name in enumerate(names)]
    right = {1: (("fsdp",), ("tensor",))}
    assert "-    return next((spec for pattern, spec in RULES if re.match(pattern" in table_patch(
        [str(file)], inputs, right
    )
    assert "if re.search(pattern, path)" in table_patch([str(file)], inputs, right)
    for changed in ({1: (("tensor",), ("fsdp",))}, {2: ()}):
        assert "re.search" not in table_patch([str(file)], inputs, changed)
    more = [*inputs, InterfaceTensor("state[0].nu['layer_0']['up']['kernel']", 3, (8, 8), "f32", None)]
    assert "re.search" not in table_patch([str(file)], more, right)


def test_a_table_is_not_for_what_has_other_axes_than_it_gives() -> None:
    """The batch has its axes from elsewhere, and a number of a list is no part of a path."""
    Path("table.py").write_text(TABLE)

    def patch(name: str, *dims: str) -> str:
        sharding = sharding_of(tuple((dim,) if dim else () for dim in dims), "mesh")
        return table_patch(["table.py"], [InterfaceTensor(name, 0, (8, 8), "f32", sharding)], {0: ((), ("model",))})

    assert '("layer/q_proj", PS(None, "model"))' in patch("params['layer']['q_proj']", "", "")
    assert '("attention/o_proj/kernel"' not in patch("params['attention']['o_proj']['kernel']", "", "")
    assert '("o_proj/kernel", PS(None, "model"))' in patch("params['attention']['o_proj']['kernel']", "model", "")
    assert patch("batch['tokens']", "data", "") == patch("weights[3]", "", "") == ""
