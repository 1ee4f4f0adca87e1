"""What differs between two results: alignment by names and lines, and collectives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import pyshardy
from pyshardy import Difference, Module, UsageError
from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.report.printing import TableOptions, plain_text
from pyshardy.results.compare import compare_traffic

ROW = CollectiveRow(
    kind="all_gather", mesh="@mesh", axes=('"x"',), group_size=4, dtype="f32", shape_before=(2, 8), shape_after=(8, 8),
    sent_bytes_per_device=192, times=1, is_in_loop=False, is_lower_bound=False, is_counted=True, op="jit(f)/dot_general",
    cause="reshard of operand 0 of stablehlo.dot_general", source=("f.py", 3, 4),
)  # fmt: skip


def layers(
    count: int,
    sharding: Callable[[int], str] = lambda layer: '[{}, {"model"}]',
    mesh: str = '"data"=4, "model"=2',
    size: int = 32,
) -> Module:
    """A stack of layers, unrolled: two products per layer, on the same lines in each."""
    kind = f"tensor<{size}x64xf32>"
    args = [f'%x: {kind} {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}} loc("x")']
    body, value = [], "%x"
    for layer in range(count):
        args.append(
            f"%w{layer}: tensor<64x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, {sharding(layer)}>}}"
            f" loc(\"params['layers'][{layer}]['w']\")"
        )
        body.append(
            f"%d{layer} = stablehlo.dot_general {value}, %w{layer}, contracting_dims = [1] x [0]"
            f' : ({kind}, tensor<64x64xf32>) -> {kind} loc("block_{layer}/dot_general"("model.py":41:8))\n'
            f'%t{layer} = stablehlo.tanh %d{layer} : {kind} loc("block_{layer}/tanh"("model.py":42:8))'
        )
        value = f"%t{layer}"
    lines = "\n".join(body)
    return pyshardy.load(
        f"sdy.mesh @mesh = <[{mesh}]>\nfunc.func @main({', '.join(args)}) -> {kind} {{\n{lines}\nreturn {value} : {kind}\n}}"
    )


def rows(found: Difference) -> list[tuple[str, str, int, int]]:
    return [(one.kind, one.name, one.count_before, one.count_after) for one in found.changes]


def test_a_program_does_not_differ_from_itself() -> None:
    found = pyshardy.diff(layers(3), layers(3))
    assert not found.differs
    assert found.compared == (5, 6)


def test_more_layers_are_aligned_as_one_row() -> None:
    found = pyshardy.diff(layers(24), layers(32))
    assert rows(found) == [("input", "params['layers'][0..31]['w']", 24, 32)]
    assert found.changes[0].is_more_alike and not found.shardings
    assert [(one.what, one.count_before, one.count_after) for one in found.collectives] == [("changed", 23, 31)]


def test_more_layers_that_are_sharded_otherwise() -> None:
    found = pyshardy.diff(layers(24), layers(32, lambda layer: '[{"model"}, {}]'))
    weights = found.shardings[0]
    values = [one for one in found.changes if one.kind == "value"]
    assert (weights.name, weights.count_before, weights.count_after) == ("params['layers'][0..31]['w']", 24, 32)
    assert (str(weights.before), str(weights.after)) == ('<@mesh, [{}, {"model"}]>', '<@mesh, [{"model"}, {}]>')
    assert [(one.name, one.count_before, one.count_after, str(one.after)) for one in values] == [
        ("`dot_general` in `block_31` at model.py:41", 0, 1, '<@mesh, [{"data"}, {}]>'),
        ("`tanh` in `block_31` at model.py:42", 0, 1, '<@mesh, [{"data"}, {}]>'),
    ]  # that of the last layer: no product behind it needs it split


def test_more_layers_of_which_one_is_sharded_otherwise() -> None:
    found = pyshardy.diff(layers(3), layers(5, lambda layer: '[{"model"}, {}]' if layer == 1 else '[{}, {"model"}]'))
    assert rows(found)[:3] == [
        ("input", "params['layers'][1]['w']", 1, 1),
        ("input", "params['layers'][3]['w']", 0, 1),
        ("input", "params['layers'][4]['w']", 0, 1),
    ]


def test_more_layers_on_a_mesh_of_another_name() -> None:
    renamed = layers(32).text(debug_info=True).replace("@mesh", "@other")
    found = pyshardy.diff(layers(24), renamed)
    assert rows(found) == [("input", "params['layers'][0..31]['w']", 24, 32)]
    assert found.changes[0].is_more_alike


def test_fewer_layers() -> None:
    found = pyshardy.diff(layers(8), layers(4))
    assert rows(found) == [("input", "params['layers'][0..7]['w']", 8, 4)]


def test_one_layer_of_many() -> None:
    found = pyshardy.diff(layers(4), layers(4, lambda layer: '[{"model"}, {}]' if layer == 2 else '[{}, {"model"}]'))
    assert rows(found)[0] == ("input", "params['layers'][2]['w']", 1, 1)
    assert found.collectives


def test_more_devices_along_the_same_axes_shard_alike() -> None:
    found = pyshardy.diff(layers(2), layers(2, mesh='"data"=8, "model"=4'))
    assert not found.changes
    assert [one.after < one.before for one in found.sizes] == [True, True]


def test_axes_of_other_names_are_compared_by_devices() -> None:
    renamed = layers(2).text(debug_info=True).replace('"data"', '"batch"').replace('"model"', '"tensor"')
    assert not pyshardy.diff(layers(2), renamed).changes
    swapped = layers(2, mesh='"model"=2, "data"=4')
    assert pyshardy.diff(layers(2), swapped).shardings  # the same axes, over other devices


def test_a_larger_batch_is_sharded_alike() -> None:
    assert not pyshardy.diff(layers(2), layers(2, size=64)).changes


def test_programs_that_have_nothing_in_common() -> None:
    other = 'func.func @main(%y: tensor<4xf32> loc("y")) -> tensor<4xf32> { return %y : tensor<4xf32> }'
    found = pyshardy.diff(layers(1), other)
    assert ("input", "x", 1, 0) in rows(found) and ("input", "y", 0, 1) in rows(found)
    assert found.differs


def test_annotations_are_compared() -> None:
    module = layers(3)
    name = "params['layers'][*]['w']"
    found = pyshardy.diff({name: "model,None"}, {name: None}, program=module)
    assert rows(found)[0] == ("input", "params['layers'][0..2]['w']", 3, 3)
    assert rows(pyshardy.diff({}, {name: "model,None"}, program=module)) == rows(
        pyshardy.diff(module, {name: "model,None"})
    )
    back = pyshardy.diff({name: "model,None"}, module)
    assert [(one.before, one.after) for one in back.shardings] == [
        (one.after, one.before) for one in pyshardy.diff(module, {name: "model,None"}).shardings
    ]


def test_annotations_need_a_program() -> None:
    with pytest.raises(UsageError, match="got annotations alone"):
        pyshardy.diff({"x": None}, {"x": "data"})
    with pytest.raises(UsageError, match="only together with annotations"):
        pyshardy.diff(layers(1), layers(1), program=layers(1))


def test_what_the_devices_send_may_not_be_known() -> None:
    text = """
    sdy.mesh @one = <["a"=2]>
    sdy.mesh @two = <["a"=4]>
    func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, [{"a"}]>},
                    %y: tensor<8xf32> {sdy.sharding = #sdy.sharding<@two, [{"a"}]>}) -> (tensor<8xf32>, tensor<8xf32>) {
      return %x, %y : tensor<8xf32>, tensor<8xf32>
    }"""
    found = pyshardy.diff(text, text)
    assert not found.changes
    assert "what the devices send is not known: partitioning a program" in str(found)


def test_collectives_come_go_and_change() -> None:
    moved = replace(ROW, source=("f.py", 9, 1))
    assert compare_traffic(Traffic((ROW,)), Traffic((ROW,))) == []
    assert [one.what for one in compare_traffic(Traffic((ROW,)), Traffic(()))] == ["removed"]
    assert [one.what for one in compare_traffic(Traffic((ROW,)), Traffic((moved,)))] == ["removed", "added"]
    larger = replace(ROW, sent_bytes_per_device=200)
    (found,) = compare_traffic(Traffic((ROW,)), Traffic((larger, ROW)))
    assert (found.what, found.count_before, found.count_after, found.bytes_after) == ("changed", 1, 2, 392)


def test_tables_fit_their_width() -> None:
    found = pyshardy.diff(layers(4), layers(6, lambda layer: '[{"model"}, {}]'))
    for width in (80, 200):
        for options in (TableOptions(), TableOptions(unfold=True)):
            text = plain_text(found.tables(options), width)
            assert max(map(len, text.splitlines())) <= width
            assert "params['layers'][0..5]['w']" in text


def test_rows_of_values_are_cut_unless_all_are_asked_for() -> None:
    found = pyshardy.diff(layers(1), layers(1, lambda layer: '[{"model"}, {}]'))
    value = next(one for one in found.changes if one.kind == "value")
    many = replace(found, changes=(*found.changes, *[replace(value, name=f"`op{number}`") for number in range(30)]))
    assert "more rows of what ops compute: --all shows them" in str(many)
    whole = plain_text(many.tables(TableOptions(unfold=True)), 120)
    assert "op29" in whole and "op29" not in str(many)
