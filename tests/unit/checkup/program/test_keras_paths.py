"""The paths of keras's variables, by the layers that read them, and entries of a `LayoutMap` for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch

import pyshardy
from pyshardy.checkup.patching.specs import SpecChange, spec_patch
from pyshardy.checkup.program.keras_paths import paths_by_layer, paths_in_lists, told_name, variable_path
from pyshardy.frontend.interface import input_tensors

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


def test_slots_in_a_list_go_by_the_path_of_their_weight() -> None:
    """Of two weights of one shape each has its own; a scalar that all have is none."""
    step = f"""
    func.func @main(%0: {KERNEL} {{tf.aliasing_output = 0 : i32}} loc("weights[0]"),
        %1: {KERNEL} {{tf.aliasing_output = 1 : i32}} loc("weights[1]"),
        %2: {KERNEL} {{tf.aliasing_output = 2 : i32}} loc("moments[0].mu[0]"),
        %3: {KERNEL} {{tf.aliasing_output = 3 : i32}} loc("moments[0].mu[1]"), %x: {ROWS})
        -> ({KERNEL} {{jax.result_info = "result[0][0]"}}, {KERNEL} {{jax.result_info = "result[0][1]"}},
            {KERNEL} {{jax.result_info = "result[1][0].mu[0]"}}, {KERNEL} {{jax.result_info = "result[1][0].mu[1]"}}) {{
      %4 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : ({ROWS}, {KERNEL}) -> tensor<8x32xf32> loc("jit(step)/jvp(one)/dot_general")
      %5 = stablehlo.dot_general %x, %1, contracting_dims = [1] x [0] : ({ROWS}, {KERNEL}) -> tensor<8x32xf32> loc("jit(step)/jvp(two)/dot_general")
      %6 = stablehlo.dot_general %x, %5, contracting_dims = [0] x [0] : ({ROWS}, tensor<8x32xf32>) -> {KERNEL}
      %7 = stablehlo.dot_general %x, %4, contracting_dims = [0] x [0] : ({ROWS}, tensor<8x32xf32>) -> {KERNEL}
      %8 = stablehlo.add %2, %6 : {KERNEL}
      %9 = stablehlo.add %3, %7 : {KERNEL}
      %10 = stablehlo.subtract %0, %8 : {KERNEL}
      %11 = stablehlo.subtract %1, %9 : {KERNEL}
      return %10, %11, %8, %9 : {KERNEL}, {KERNEL}, {KERNEL}, {KERNEL}
    }}"""
    module = pyshardy.load(step)
    assert paths_in_lists(module) == {0: "one/kernel", 1: "two/kernel", 2: "one/kernel", 3: "two/kernel"}
    inputs = input_tensors(module.root)
    assert told_name(module, inputs[2]) == "moments[0].mu[0] (one/kernel)" and told_name(module, inputs[4]) == "arg4"


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


def test_keras_takes_one_axis_for_a_dimension(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(LAYOUT)
    changes = [SpecChange("top/kernel", ((), ("model",)), new, path="top/kernel") for new in (
        ((), ("model", "data")), (("data",), ("model",)))]  # fmt: skip
    assert [bool(spec_patch(["net.py"], [change])) for change in changes] == [False, True]
