"""The paths of keras's variables, by the layers that read them, and entries of a `LayoutMap` for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch

import pyshardy
from pyshardy.checkup.patching.specs import SpecChange, spec_patch
from pyshardy.checkup.program.keras_paths import paths_by_layer, variable_path

TABLE, KERNEL, ROWS = "tensor<512x64xf32>", "tensor<64x32xf32>", "tensor<8x64xf32>"
STEP = f"""
func.func @main(%0: {TABLE} loc("weights[0]"), %1: {KERNEL} loc("weights[1]"), %ids: tensor<8xi32>, %x: {ROWS}) -> tensor<8x32xf32> {{
  %2 = call @_take(%0, %ids) : ({TABLE}, tensor<8xi32>) -> {ROWS} loc("jit(step)/jvp(items)/jit(_take)")
  %3 = stablehlo.add %2, %x : {ROWS}
  %4 = stablehlo.dot_general %3, %1, contracting_dims = [1] x [0] : ({ROWS}, {KERNEL}) -> tensor<8x32xf32> loc("jit(step)/jvp(top)/dot_general")
  return %4 : tensor<8x32xf32>
}}
func.func private @_take(%0: {TABLE}, %ids: tensor<8xi32>) -> {ROWS} {{
  %1 = stablehlo.slice %0 [0:8, 0:64] : ({TABLE}) -> {ROWS}
  return %1 : {ROWS}
}}"""
LAYOUT = """\
layout = LayoutMap(mesh)
layout["top/kernel"] = (None, "model")
x["items"] = array((8,), P())
"""


def test_a_layer_says_the_path_of_what_it_reads() -> None:
    assert dict(paths_by_layer(pyshardy.load(STEP))) == {0: "items/embeddings", 1: "top/kernel"}


def test_optimizer_state_is_no_variable_of_a_layer() -> None:
    assert variable_path("tv['lm_head/kernel']") == "lm_head/kernel"
    assert variable_path("ov['adamw/lm_head_kernel_velocity']") == variable_path("weights[2]") == ""


@pytest.mark.parametrize(
    ("path", "old", "new", "text"),
    [
        ("items/embeddings", (), (("model",),), LAYOUT.replace("x[", 'layout["items/embeddings"] = ("model",)\nx[')),
        ("top/kernel", ((), ("model",)), (("model",), ()), LAYOUT.replace('(None, "model")', '("model", None)')),
    ],
)
def test_an_entry_of_a_layout(
    path: str,
    old: tuple[tuple[str, ...], ...],
    new: tuple[tuple[str, ...], ...],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(LAYOUT)
    patch = spec_patch(["net.py"], [SpecChange(path, old, new, path=path)])
    assert "".join(apply_patch(LAYOUT.splitlines(keepends=True), patch)) == text
