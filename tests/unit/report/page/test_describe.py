"""The data of the page."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pyshardy
from golden.situations import SITUATIONS
from pyshardy.report.page.linked import MARK
from pyshardy.report.page.render import json_bytes
from pyshardy.results.pages import describe_result
from support.hash_seeds import printed_under_hash_seeds

from .results import MLP, data_of, propagated


def value_named(data: dict[str, Any], name: str) -> int:
    return next(value for value, text in data["values"]["names"] if data["texts"][text] == name)


def tensor_of(data: dict[str, Any], name: str) -> dict[str, Any]:
    return data["tensors"][data["values"]["tensor"][value_named(data, name)]]


def test_the_overview_has_the_totals_of_the_summary_and_the_traffic() -> None:
    result = pyshardy.propagate(MLP, trace=True)
    about = describe_result(result, hints=False)["overview"]
    part = pyshardy.partition(result)
    assert about["devices"] == 8
    assert about["meshes"][0]["axes"] == [{"name": "data", "size": 4}, {"name": "model", "size": 2}]
    assert about["inputs"] == [3, 139264, 100352, 67584]
    assert about["kinds"] == [["parameters", 2, 131072, 65536], ["other arguments", 1, 8192, 2048]]
    assert about["sent"] == part.traffic.sent_bytes_per_device > 0
    assert about["peak"]["bytes"] == part.bytes_per_device == sum(size for _, size in about["peak"]["categories"])


def test_a_value_has_its_tensor_and_its_blocks() -> None:
    tensor = tensor_of(data_of("mlp"), "params['w2']")
    assert (tensor["shape"], tensor["local"], tensor["bytes"]) == ((256, 64), (128, 64), [65536, 32768])
    assert [block[5:] for block in tensor["picture"]["blocks"]] == [
        ["0,2,4,6", "[0:128, 0:64]"],
        ["1,3,5,7", "[128:256, 0:64]"],
    ]


def test_many_dimensions_are_drawn_without_those_that_are_whole() -> None:
    program = """
    sdy.mesh @mesh = <["x"=2, "y"=2]>
    func.func @main(%a: tensor<4x6x8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}, {"y"}]>}) -> tensor<4x6x8x2xf32> {
      %0 = stablehlo.tanh %a : tensor<4x6x8x2xf32>
      return %0 : tensor<4x6x8x2xf32>
    }"""
    made = tensor_of(describe_result(pyshardy.propagate(program), hints=False), "arg0")["picture"]
    assert made["dims"] == [1, 3] and len(made["blocks"]) == 4


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_all_that_is_referred_to_is_there(situation: Any) -> None:
    data = data_of(situation.name)
    texts, values, ops = len(data["texts"]), len(data["values"]["tensor"]), len(data["ops"]["kind"])
    assert all(
        0 <= text < texts for column in ("kind", "short", "text", "scope", "file") for text in data["ops"][column]
    )
    assert all(-1 <= tensor < len(data["tensors"]) for tensor in data["values"]["tensor"])
    for lengths, numbers in (data["ops"]["operands"], data["ops"]["results"]):
        assert len(lengths) == ops and sum(lengths) == len(numbers)
        assert all(0 <= value < values for value in numbers)
    for side in ("inputs", "outputs"):
        assert data[side] and all(0 <= value < values for port in data[side] for value in port[3])
    for *_, op, first, rest, round_ in data["stories"]["moves"]:
        assert op < ops and first < texts and rest < texts and round_ < len(data["stories"]["rounds"])
    for _, _, *numbers in data["stories"]["whole"]:
        while numbers:
            count = data["texts"][numbers[0]].count(MARK)
            assert len(numbers) > count
            del numbers[: count + 1]
    named = [op for one in data["collectives"] for op in one["ops"]]
    assert all(0 <= op < ops for op in named)


def test_conflicts_are_those_of_the_result() -> None:
    result = propagated("wrong_annotation")
    found = describe_result(result, hints=False)["conflicts"]
    assert [row[3] for row in found] == [row.bytes_per_device for row in result.conflicts()] != []


def test_hints_stand_beside_their_collectives() -> None:
    result = propagated("wrong_annotation")
    hints = {story.reason: story.hint for story in pyshardy.partition(result).hints()}
    found = describe_result(result)["collectives"]
    assert hints and {one["hint"] for one in found} == {*hints.values(), None}
    for one in found:
        assert [hint for reason, hint in hints.items() if reason in one["text"]] == [one["hint"]] * bool(one["hint"])


@pytest.mark.slow
def test_equal_programs_give_equal_bytes() -> None:
    code = (
        "import sys; from pyshardy import propagate; from pyshardy.results.pages import describe_result;"
        "from pyshardy.report.page.render import json_bytes;"
        f"sys.stdout.buffer.write(json_bytes(describe_result(propagate({str(MLP)!r}), False, 'mlp')))"
    )
    (found,) = printed_under_hash_seeds(code)
    assert found == json_bytes(data_of("mlp"))
    assert json.loads(found)["version"] == 1


def test_a_program_without_a_mesh() -> None:
    program = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.tanh %a : tensor<4xf32> return %0 : tensor<4xf32> }"
    data = describe_result(pyshardy.propagate(program))
    assert (data["overview"]["devices"], data["overview"]["meshes"], data["collectives"]) == (1, [], [])
