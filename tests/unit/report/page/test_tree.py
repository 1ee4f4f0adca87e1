"""The tree of ops."""

from __future__ import annotations

from typing import Any

import pyshardy
from pyshardy.report.page.tree import FOLDED, OP
from pyshardy.results.pages import describe_result

from .results import data_of


def names(data: dict[str, Any], node: list[Any]) -> Any:
    name, kind, times, below = node
    text = data["texts"][name] + (f" x{times}" if times > 1 else "")
    return text if kind == OP else {text: [names(data, one) for one in below]}


def ops_below(node: list[Any]) -> list[int]:
    return list(node[3]) if node[1] == OP else [op for one in node[3] for op in ops_below(one)]


def layers(count: int, odd: int | None = None) -> dict[str, Any]:
    """A program with a scope per layer; one may do something else."""
    lines = []
    for layer in range(count):
        op = "stablehlo.cosine" if layer == odd else "stablehlo.tanh"
        place = f'loc("jit(f)/layer_{layer}/act"("model.py":7:1))'
        lines.append(f"%{layer + 1} = {op} %{layer} : tensor<8xf32> {place}".replace("%0 ", "%a "))
    body = "\n".join(lines)
    text = f"""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
      {body}
      return %{count} : tensor<8xf32>
    }}"""
    return describe_result(pyshardy.propagate(text), hints=False)


def test_scopes_lines_and_ops() -> None:
    data = data_of("mlp")
    assert [names(data, node) for node in data["tree"]] == [
        {"mlp.mlir:8": ["stablehlo.dot_general"]},
        {"mlp.mlir:9": ["stablehlo.tanh"]},
        {"mlp.mlir:10": ["stablehlo.dot_general"]},
    ]


def test_layers_that_are_alike_are_folded_with_their_count() -> None:
    data = layers(4)
    (node,) = data["tree"]
    assert (data["texts"][node[0]], node[1], node[2]) == ("layer_0..3", FOLDED, 4)
    assert [data["texts"][member[0]] for member in node[3]] == [f"layer_{layer}" for layer in range(4)]
    odd = layers(5, odd=4)
    assert [odd["texts"][node[0]] for node in odd["tree"]] == ["layer_0..3", "layer_4"]


def test_every_op_that_is_shown_is_there_once() -> None:
    for name in ("attention", "scan_over_layers", "flax_model"):
        data = data_of(name)
        found = sorted(op for node in data["tree"] for op in ops_below(node))
        hidden = set(data["ops"]["hidden"])
        assert found == [op for op in range(len(data["ops"]["kind"])) if op not in hidden]
