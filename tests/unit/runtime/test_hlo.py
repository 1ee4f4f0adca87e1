"""Collectives in the text of what XLA has compiled."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pyshardy
from pyshardy.api.run import compiled_collectives
from pyshardy.costing.traffic import KindTotal
from pyshardy.runtime.hlo import hlo_collectives, hlo_kinds

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'


def entry(line: str, before: str = "") -> str:
    return (
        f"HloModule m\n\n{before}ENTRY %main (p: f32[8]) -> f32[8] {{\n  %p = f32[8]{{0}} parameter(0)\n  {line}\n}}\n"
    )


@pytest.mark.parametrize(
    ("line", "kind", "sent"),
    [
        ("ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={{0,1},{2,3}}, to_apply=%add", "all_reduce", 32),
        ("ROOT %r = f32[8]{0} all-reduce(%p), replica_groups=[2,4]<=[8], to_apply=%add", "all_reduce", 48),
        ("ROOT %r = f32[8]{0} all-reduce(%p), replica_groups=[4,2]<=[2,4]T(1,0), to_apply=%add", "all_reduce", 32),
        ("ROOT %r = f32[32]{0} all-gather(%p), replica_groups={{0,1,2,3}}, dimensions={0}", "all_gather", 96),
        ("ROOT %r = f32[2]{0} reduce-scatter(%p), replica_groups=[1,4]<=[4], dimensions={0}, to_apply=%a",
         "reduce_scatter", 24),
        ("ROOT %r = f32[8]{0} all-to-all(%p), replica_groups={{0,1,2,3}}, dimensions={0}", "all_to_all", 24),
        ("ROOT %r = (bf16[2]{0}, bf16[2]{0}) all-to-all(%p, %p), replica_groups={{0,1}}", "all_to_all", 4),
        ("ROOT %r = pred[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,0}}", "collective_permute", 8),
        ("%s = (f32[8]{0}, f32[32]{0}) all-gather-start(%p), replica_groups={{0,1,2,3}}, dimensions={0}",
         "all_gather", 96),
        ("%s = (c64[8]{0}, c64[8]{0}, u32[], u32[]) collective-permute-start(%p), source_target_pairs={{0,1}}",
         "collective_permute", 64),
        ("ROOT %r = s8[8]{0} all-reduce(%p), replica_groups=mesh['x'=2,'y'=4] {'y'}, to_apply=%add", "all_reduce", 12),
        ("ROOT %r = s8[8]{0} all-reduce(%p), replica_groups=mesh['x'=2,'y'=4] {'y':(1)2}, to_apply=%add",
         "all_reduce", 8),
    ],
)  # fmt: skip
def test_kinds_groups_and_types(line: str, kind: str, sent: int) -> None:
    assert hlo_kinds(entry(line)) == (KindTotal(kind, 1, sent),)


@pytest.mark.parametrize(
    "line",
    [
        "ROOT %r = f32[8]{0} all-reduce(%p), replica_groups={{0},{1}}, to_apply=%add",
        "ROOT %r = f32[8]{0} collective-permute(%p), source_target_pairs={{0,0},{1,1}}",
        "ROOT %r = f32[8]{0} negate(%p)",
        "ROOT %d = f32[32]{0} all-gather-done(%s)",
    ],
)
def test_where_nobody_sends(line: str) -> None:
    assert hlo_kinds(entry(line)) == ()


def test_computations_count_as_often_as_they_are_called() -> None:
    body = "%body (q: f32[8]) -> f32[8] {\n  ROOT %g = f32[8]{0} all-reduce(%q), replica_groups={{0,1}}, to_apply=%add\n}\n\n"
    unused = body.replace("%body", "%unused")
    for line, count in [
        ("ROOT %w = f32[8]{0} while(%p), condition=%cond, body=%body", 1),
        ("ROOT %w = f32[8]{0} call(%p), to_apply=%body", 1),
        ("ROOT %w = f32[8]{0} fusion(%p), kind=kLoop, calls=%body", 1),
        ("ROOT %w = f32[8]{0} conditional(%p), branch_computations={%cond, %body, %body}", 1),
        ("ROOT %w = f32[8]{0} conditional(%p), true_computation=%body, false_computation=%cond", 1),
        ("ROOT %w = f32[8]{0} negate(%p)", 0),
    ]:
        found = hlo_kinds(entry(line, body + unused))
        assert found == ((KindTotal("all_reduce", count, 32 * count, "while" in line),) if count else ())


REDUCE = "all-reduce(%q), replica_groups={{0,1}}, to_apply=%add"
LOOPS = f"""%inner (q: f32[8]) -> f32[8] {{
  ROOT %g = f32[8]{{0}} {REDUCE}
}}

%check (q: f32[8]) -> pred[] {{
  ROOT %g = f32[2]{{0}} {REDUCE}
}}

%outer (q: f32[8]) -> f32[8] {{
  ROOT %w = f32[8]{{0}} while(%q), condition=%check, body=%inner, backend_config={{"known_trip_count":{{"n":"5"}}}}
}}

"""


def test_rounds_of_loops_multiply() -> None:
    loop = "ROOT %w = f32[8]{0} while(%p), condition=%other, body=%outer"
    known = loop + ', metadata={op_name="w"}, backend_config={"known_trip_count":{"n":"3"},"x":{}}'
    assert hlo_kinds(entry(known, LOOPS)) == (KindTotal("all_reduce", 3 * (5 + 6), 3 * (5 * 32 + 6 * 8)),)
    assert hlo_kinds(entry(loop, LOOPS)) == (KindTotal("all_reduce", 5 + 6, 5 * 32 + 6 * 8, is_lower_bound=True),)


def test_a_loop_of_no_rounds_has_its_condition_alone() -> None:
    loop = 'ROOT %w = f32[8]{0} while(%p), condition=%check, body=%inner, backend_config={"known_trip_count":{"n":"0"}}'
    assert hlo_kinds(entry(loop, LOOPS)) == (KindTotal("all_reduce", 1, 8),)


def test_the_branch_that_sends_most_counts() -> None:
    line = "ROOT %c = f32[8]{0} conditional(%p), branch_computations={%inner, %outer, %check}"
    assert hlo_kinds(entry(line, LOOPS)) == (KindTotal("all_reduce", 5 + 6, 5 * 32 + 6 * 8),)


def test_totals_are_sorted_by_name() -> None:
    lines = "%a = f32[8]{0} all-to-all(%p), replica_groups={{0,1}}\n  %b = f32[8]{0} all-reduce(%p), replica_groups={{0,1}}, to_apply=%add"
    assert [total.kind for total in hlo_kinds(entry(lines + "\n" + "  " + lines))] == ["all_reduce", "all_to_all"]
    assert [total.count for total in hlo_kinds(entry(lines + "\n" + "  " + lines))] == [2, 2]


ON = pyshardy.Mesh([("x", 2), ("y", 4)])


@pytest.mark.parametrize(
    ("groups", "axes"),
    [
        ("replica_groups={{0,1,2,3},{4,5,6,7}}", "y"),
        ("replica_groups=[2,4]<=[8]", "y"),
        ("replica_groups=[4,2]<=[2,4]T(1,0)", "x"),
        ("replica_groups=[1,8]<=[8]", "x, y"),
        ("replica_groups={{0,4,1,5,2,6,3,7}}", "x, y"),
        ("replica_groups=mesh['a'=2,'b'=4] {'b'}", "y"),
        ("replica_groups=mesh['a'=8] {'a':(2)2}", "y"),
        ("replica_groups={{0,5},{1,4},{2,7},{3,6}}", "other groups"),
    ],
)
def test_groups_are_along_the_axes_of_the_mesh(groups: str, axes: str) -> None:
    line = f"ROOT %r = f32[8]{{0}} all-reduce(%p), channel_id=1, {groups}, to_apply=%add"
    assert [(row.kind, row.axes) for row in hlo_collectives(entry(line), ON)] == [("all_reduce", axes)]


def test_permutes_are_along_the_axes_on_which_devices_differ() -> None:
    line = "ROOT %r = f32[8]{0} collective-permute(%p), source_target_pairs={{0,1},{1,2},{2,3},{3,0}}"
    assert [row.axes for row in hlo_collectives(entry(line), ON)] == ["y"]
    assert [row.axes for row in hlo_collectives(entry(line.replace("{0,1}", "{0,5}")), ON)] == ["x, y"]


def test_collectives_of_one_kind_along_other_axes_are_apart() -> None:
    lines = [f"%r{size} = f32[8]{{0}} all-reduce(%p), replica_groups=[{8 // size},{size}]<=[8]" for size in (4, 8, 4)]
    found = hlo_collectives(entry("\n  ".join(lines)), ON)
    assert [(row.axes, row.count, row.sent_bytes_per_device) for row in found] == [("x, y", 1, 56), ("y", 2, 96)]


def test_a_collective_that_several_fusions_take_turns_to_run_counts_once() -> None:
    """XLA for TPUs repeats it in every fusion that runs while it travels; its channel stays the same."""
    part = 'f32[32]{0} all-gather(%q), channel_id=8, replica_groups={{0,1,2,3}}, backend_config={"async_collective_fusion_config":{}}'
    parts = "".join(f"%part{number} (q: f32[8]) -> f32[32] {{\n  ROOT %g = {part}\n}}\n\n" for number in range(3))
    lines = "\n  ".join(
        f"%f{number} = f32[32]{{0}} fusion(%p), kind=kCustom, calls=%part{number}" for number in range(3)
    )
    assert hlo_kinds(entry(lines, parts)) == (KindTotal("all_gather", 1, 96),)
    others = parts.replace("async_collective_fusion_config", "config")
    assert hlo_kinds(entry(lines, others)) == (KindTotal("all_gather", 3, 288),)


def test_a_collective_that_travels_during_a_loop_counts_where_it_starts() -> None:
    """The kernels of a loop help it along in every round; it runs once."""
    gather = 'f32[32]{0} all-gather(%q), channel_id=8, replica_groups={{0,1,2,3}}, backend_config={"async_collective_fusion_config":{}}'
    start = f'%start (q: f32[8]) -> f32[32] {{\n  %g = {gather}\n  ROOT %c = f32[32]{{0}} custom-call(%g), custom_call_target="AsyncCollectiveStart"\n}}\n\n'
    step = f"%step (q: f32[8]) -> f32[32] {{\n  ROOT %g = {gather}\n}}\n\n"
    loop = COUNTED.replace(
        "%body (q: (f32[8], u32[])) -> (f32[8], u32[]) {",
        "%body (q: (f32[8], u32[])) -> (f32[8], u32[]) {\n  %h = f32[32]{0} fusion(%q), kind=kCustom, calls=%step",
    )
    lines = "%s = f32[32]{0} fusion(%p), kind=kCustom, calls=%start\n  " + LOOP
    assert _gathers(hlo_kinds(entry(lines, start + step + loop))) == (1, 96)
    assert _gathers(hlo_kinds(entry(lines, start + step.replace("channel_id=8", "channel_id=9") + loop))) == (5, 480)
    twice = lines + "\n  %u = f32[32]{0} fusion(%p), kind=kCustom, calls=%start"
    assert _gathers(hlo_kinds(entry(twice, start + step + loop))) == (2, 192)


def _gathers(kinds: tuple[KindTotal, ...]) -> tuple[int, int]:
    (row,) = [row for row in kinds if row.kind == "all_gather"]
    return row.count, row.sent_bytes_per_device


def test_a_computation_that_reduces_and_keeps_a_part_is_a_reduce_scatter() -> None:
    inside = "%all-reduce-scatter.3 (q: f32[8]) -> f32[2] {\n  %g = f32[8]{0} all-reduce(%q), replica_groups={{0,1,2,3}}, to_apply=%add\n}\n\n"
    line = "ROOT %f = f32[2]{0} fusion(%p), kind=kCustom, calls=%all-reduce-scatter.3"
    assert hlo_kinds(entry(line, inside)) == (KindTotal("reduce_scatter", 1, 24),)


LOOP = """%c = u32[] constant(0)
  %d = u32[] copy(%c)
  %t = (f32[8]{0}, u32[]) tuple(%p, %d)
  ROOT %w = (f32[8]{0}, u32[]) while(%t), condition=%cond, body=%body"""

COUNTED = """%cond (q: (f32[8], u32[])) -> pred[] {
  %q = (f32[8]{0}, u32[]) parameter(0)
  %n = u32[]{:T(128)} constant(7)
  %i = u32[] get-tuple-element(%q), index=1
  ROOT %l = pred[] compare(%i, %n), direction=LT
}

%body (q: (f32[8], u32[])) -> (f32[8], u32[]) {
  %q = (f32[8]{0}, u32[]) parameter(0)
  %x = f32[8]{0} get-tuple-element(%q), index=0
  %i = u32[] get-tuple-element(%q), index=1
  %one = u32[] constant(1)
  %a = u32[] add(%i, %one)
  %b = u32[] add(%one, %a)
  %g = f32[8]{0} all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
  ROOT %r = (f32[8]{0}, /*index=1*/u32[]) tuple(%g, %b)
}

"""


@pytest.mark.parametrize(
    ("before", "after", "rounds"),
    [
        ("", "", 4),
        ("constant(7)", "constant(8)", 4),
        ("constant(7)", "constant(0)", 0),
        ("add(%one, %a)", "add(%one, %one)", None),
        ("add(%one, %a)", "multiply(%one, %a)", None),
        ("direction=LT", "direction=NE", None),
        ("%n = u32[]{:T(128)} constant(7)", "%n = u32[] get-tuple-element(%q), index=1", None),
        ("tuple(%g, %b)", "tuple(%g, %i)", None),
    ],
)
def test_the_rounds_of_a_loop_are_read_from_its_counter(before: str, after: str, rounds: int | None) -> None:
    """XLA for TPUs does not write them."""
    found = hlo_kinds(entry(LOOP, COUNTED.replace(before, after) if before else COUNTED))
    count = 1 if rounds is None else rounds
    assert found == ((KindTotal("all_reduce", count, 32 * count, is_lower_bound=rounds is None),) if count else ())


def test_what_xla_compiles_sends_as_much_as_the_program_says() -> None:
    text = (
        MESH
        + """func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
        -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }"""
    )
    partition = pyshardy.partition(pyshardy.load(text))
    assert partition.traffic.kinds
    assert compiled_collectives(partition) == partition.traffic.kinds


@pytest.mark.slow
def test_what_xla_compiles_runs_as_often_as_the_program_says() -> None:
    mesh = Mesh(np.array(jax.devices()), ("x",))
    on = [NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x", None), (None, "x"))]
    w, x = (jax.ShapeDtypeStruct(shape, "float32", sharding=where) for shape, where in zip([(8, 8), (16, 8)], on))

    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.with_sharding_constraint(jnp.tanh(x @ w), on[1])

    def scanned(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, _: (layer(x, w), None), x, None, length=96)[0]

    def called(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, s: (jax.jit(layer)(x, w) * s, None), x, jnp.arange(5.0), reverse=True)[0]

    def down(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda s: s[1] > 0, lambda s: (layer(s[0], w), s[1] - 2), (x, 10))[0]

    def nested(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(3, 8, lambda _, x: jax.lax.fori_loop(0, 7, lambda _, x: layer(x, w), x), x)

    def given(w: jax.Array, x: jax.Array) -> jax.Array:
        rounds = jax.jit(lambda x, n: jax.lax.fori_loop(0, n, lambda _, x: layer(x, w), x))
        return rounds(rounds(x, 3), 4)

    def taken(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.cond(x[0, 0] > 0, lambda: layer(layer(x, w), w), lambda: layer(x, w))

    for function, count in [(scanned, 96), (called, 5), (down, 5), (nested, 35), (given, 7), (taken, 2)]:
        partition = pyshardy.partition(pyshardy.load(jax.jit(function).lower(w, x)))
        kinds = {total.kind: total for total in partition.traffic.kinds}
        assert kinds["reduce_scatter"] == KindTotal("reduce_scatter", count, count * 7 * 16 * 4)
        assert compiled_collectives(partition) == partition.traffic.kinds


def test_what_jax_compiles_is_read() -> None:
    mesh = Mesh(np.array(jax.devices()), ("x",))
    rows, whole = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("x",), ()))
    jitted = jax.jit(lambda x: x * 2, in_shardings=rows, out_shardings=whole)
    text = jitted.lower(jax.ShapeDtypeStruct((64,), "float32")).compile().as_text()
    assert hlo_kinds(text) == (KindTotal("all_gather", 1, 7 * 8 * 4),)
