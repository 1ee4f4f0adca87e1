"""Random programs compute the same numbers on eight devices as on one.

`python -m tests.end_to_end.numbers_campaign` runs many more. Of the 152 here none is refused.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from end_to_end import numbers_compare
from end_to_end.number_programs import FAMILIES, ending, typed_program
from end_to_end.numbers_campaign import outcome
from end_to_end.numbers_compare import Verdict, compare_numbers, difference, inputs_for, specials_of
from end_to_end.typed_programs import kind_of
from end_to_end.typed_reductions import ALL

import pyshardy
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.frontend.interface import output_tensors
from pyshardy.ir.functions import main_function, return_op
from pyshardy.ir.nodes import Value
from pyshardy.reshard import moves
from pyshardy.reshard.exchange_plan import _rounds_of as right_rounds
from pyshardy.transforms.padding.padder import Padder
from support.reference import jaxlib_version

COUNT = 8
"""Programs of every family; `make campaign` has thousands."""
SHARED = 3
"""The smallest number among them of which a device has less than everything, or sends something."""


def test_slices_of_slices_are_right_where_those_of_xlas_own_partitioner_are_wrong() -> None:
    """The XLA of jaxlib 0.10 adds the indices of slices of slices unclamped; a barrier hides them."""
    wanted = Verdict.DIFFERENT if jaxlib_version() < (0, 12) else Verdict.EQUAL
    assert outcome("op", 87, "local").verdict is Verdict.EQUAL
    assert outcome("op", 87, "xla").verdict is wanted


def test_xla_that_is_wrong_on_one_device_is_told_from_a_wrong_program(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare_numbers(PRODUCT, 2).verdict is Verdict.EQUAL
    single, several = numbers_compare.run_on_one_device, pyshardy.Partition.run_flat
    monkeypatch.setattr(
        numbers_compare, "run_on_one_device", lambda *args: [np.asarray(one) + 1 for one in single(*args)]
    )
    assert compare_numbers(PRODUCT, 2).verdict is Verdict.MISCOMPILED
    monkeypatch.setattr(
        pyshardy.Partition, "run_flat", lambda *args, **options: [one + 2 for one in several(*args, **options)]
    )
    assert compare_numbers(PRODUCT, 2).verdict is Verdict.DIFFERENT


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_compute_the_same(family: str) -> None:
    found = {seed: outcome(family, seed) for seed in range(COUNT)}
    assert {seed: one.details for seed, one in found.items() if one.verdict is Verdict.DIFFERENT} == {}
    assert {one.verdict for one in found.values()} == {Verdict.EQUAL}, found
    assert sum(one.is_shared for one in found.values()) >= SHARED, found


@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_compute_the_same_as_xla_sees_them(family: str) -> None:
    found = {seed: outcome(family, seed, view="xla") for seed in range(COUNT // 4)}
    assert {seed: one.details for seed, one in found.items() if one.verdict is not Verdict.EQUAL} == {}


@pytest.mark.parametrize("kept", [3, 16])
@pytest.mark.parametrize("dims", ['[{}, {"x"}]', '[{"x"}, {"y"}]', '[{"x"}, {}]'])
def test_the_largest_elements_along_a_sharded_dimension(kept: int, dims: str) -> None:
    sharding = f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}"
    found = f"tensor<8x{kept}xf32>"
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=4]>
    func.func @main(%a: tensor<8x16xf32> {sharding}) -> ({found} {sharding if kept == 16 else ""}) {{
      %values, %indices = chlo.top_k(%a, k = {kept}) : tensor<8x16xf32> -> ({found}, tensor<8x{kept}xi32>)
      return %values : {found}
    }}"""
    for view in ("xla", "stablehlo"):
        assert compare_numbers(text, 1, is_exact=True, view=view).verdict is Verdict.EQUAL


# That wrong numbers are noticed

PRODUCT = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<12x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x12xf32>, tensor<12x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}"""


def test_a_broken_collective_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare_numbers(PRODUCT, 2).verdict is Verdict.EQUAL
    right = pyshardy.partition

    def broken(module: Any, _: pyshardy.PartitionOptions, **others: Any) -> pyshardy.Partition:
        found = right(module, pyshardy.PartitionOptions(mesh_axes_groups=False), **others)
        text, count = re.subn(
            r"\[\[0, 1, 2, 3\], \[4, 5, 6, 7\]\]", "[[0, 1, 2, 7], [4, 5, 6, 3]]", found.module.text()
        )
        assert count == 1
        return dataclasses.replace(found, module=pyshardy.load(text))

    monkeypatch.setattr(pyshardy, "partition", broken)
    found = compare_numbers(PRODUCT, 2)
    assert found.verdict is Verdict.DIFFERENT
    assert re.fullmatch(r"result: \S+ instead of \S+ at \[\d, \d+\], \d+ of 128 wrong", found.details)


def _reversed_groups(axes: Any, mesh: Mesh) -> list[tuple[int, ...]]:
    """The groups of a collective with the devices the other way round."""
    return [tuple(group)[::-1] for group in replica_groups(axes, mesh)]


def _as_it_is(padder: Padder, value: Value, *_: Any) -> Value:
    """A value whose padding is not masked."""
    return value


@pytest.mark.parametrize(
    ("place", "broken"),
    [
        ("pyshardy.runtime.device_lists.replica_groups", _reversed_groups),
        ("pyshardy.transforms.padding.padder.Padder.masked", _as_it_is),
    ],
)
def test_random_programs_notice(place: str, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, broken)
    verdicts = Counter(outcome("typed", seed).verdict for seed in (20, 22, 40))
    assert verdicts[Verdict.DIFFERENT] >= 2, verdicts


def _from_the_front(pieces: Any) -> tuple[Any, ...]:
    """Rounds that take every piece from the front of its shard."""
    rounds = right_rounds(pieces)
    return tuple(
        round_._replace(pieces=tuple(piece._replace(source_start=0) for piece in round_.pieces)) for round_ in rounds
    )


def test_pieces_from_wrong_places_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = range(12)
    assert {outcome("moving", seed).verdict for seed in seeds} == {Verdict.EQUAL}
    for cached in (moves.slice_move, moves.pad_move, moves.reverse_move, moves.join_move):
        cached.cache_clear()
    monkeypatch.setattr("pyshardy.reshard.exchange_plan._rounds_of", _from_the_front)
    verdicts = Counter(outcome("moving", seed).verdict for seed in seeds)
    for cached in (moves.slice_move, moves.pad_move, moves.reverse_move, moves.join_move):
        cached.cache_clear()
    assert verdicts[Verdict.DIFFERENT] >= 4, verdicts


def _not_clamped(builder: Any, indices: Value, *_: Any) -> Value:
    """Indices that may be out of bounds."""
    return indices


def test_indices_out_of_bounds_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = (404, 608, 628)
    assert {outcome("indexed", seed).verdict for seed in seeds} == {Verdict.EQUAL}
    monkeypatch.setattr("pyshardy.transforms.local.gather._clamped", _not_clamped)
    assert {outcome("indexed", seed).verdict for seed in seeds} == {Verdict.DIFFERENT}


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_return_something(family: str) -> None:
    for seed in range(10):
        assert output_tensors(pyshardy.load(FAMILIES[family](seed)).root)


def test_programs_of_all_types_return_everything() -> None:
    elements = set()
    for seed in range(60):
        root = pyshardy.load(typed_program(seed)).root
        main = main_function(root)
        made = {result for op in main.region.block for result in op.results if op.name != "stablehlo.constant"}
        if kind_of(seed) != "chain":
            assert made <= set(return_op(main).operands)
        elements |= {port.element for port in output_tensors(root)}
    assert set(ALL) <= elements


def test_what_is_refused_and_what_one_device_cannot_run_is_told_apart() -> None:
    line = "%1 = stablehlo.custom_call @{}(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>\n  return %1"
    refused, strange = (
        PRODUCT.replace("return %0", line.format(name)) for name in ("CustomSPMDPartitioning", "nobody")
    )
    assert compare_numbers(refused, 0).verdict is Verdict.REFUSED
    assert compare_numbers(strange, 0).verdict is Verdict.NOT_RUN


ONE = np.array([[1.0, -2.0], [3.0, 4.0]], np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, jnp.bfloat16, np.complex64, np.int8, np.bool_])
@pytest.mark.parametrize("is_exact", [False, True])
def test_one_wrong_number_is_a_difference(dtype: Any, is_exact: bool) -> None:
    right = ONE.astype(dtype)
    assert difference(right, right.copy(), is_exact) == ""
    wrong = right.copy()
    wrong[1, 0] = not wrong[1, 0] if dtype is np.bool_ else wrong[1, 0] + 1
    assert difference(wrong, right, is_exact).endswith("at [1, 0], 1 of 4 wrong")


def test_the_order_of_sums_is_none_unless_bits_matter() -> None:
    near = ONE * np.float32(1 + 1e-6)
    assert difference(near, ONE) == ""
    assert difference(near, ONE, is_exact=True)
    assert difference(ONE * np.float32(1 + 1e-4), ONE)


def test_subnormal_numbers_may_be_zeros_and_no_others() -> None:
    zero = np.zeros(2, "float32")
    assert not difference(np.full(2, 2.4e-44, "float32"), zero, is_exact=True)
    assert difference(np.full(2, 1.2e-38, "float32"), zero, is_exact=True)
    assert difference(np.full(2, 1, "int32"), np.zeros(2, "int32"), is_exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_special_numbers_count(special: float, dtype: Any) -> None:
    right = ONE.astype(dtype)
    right[0, 1] = special
    assert difference(right.copy(), right) == ""
    for other in (0, np.nan, np.inf, -np.inf):
        wrong = right.copy()
        wrong[0, 1] = other
        is_same = other == special or (other != other and special != special)
        is_both_undefined = dtype is np.complex64 and not np.isfinite(other)
        assert (difference(wrong, right) == "") == (is_same or is_both_undefined)


def test_a_special_number_does_not_hide_its_neighbours() -> None:
    right = np.array([np.inf, 1.0], np.float32)
    assert difference(np.array([np.inf, 1.5], np.float32), right)


@pytest.mark.parametrize("other", [ONE[0], ONE.astype(np.float64), ONE.T[:1]])
def test_another_shape_or_type_is_a_difference(other: np.ndarray) -> None:
    assert " instead of float32(2, 2)" in difference(other, ONE)


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize(
    ("window", "is_finite"),
    [
        ("pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [3]", False),
        ("pad = [[0, 2]], lhs_dilate = [1]", True),
        ("pad = [[0, 0]], lhs_dilate = [2]", True),
        ("stride = [2]", False),
        ("", False),
    ],
)
def test_infinities_in_a_kernel_beside_padding_are_up_to_xla(window: str, is_finite: bool, generic: bool) -> None:
    text = f"""func.func @main(%a: tensor<1x1x?xf32>, %b: tensor<1x1x1xf32>) {{
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {{{window}}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : (tensor<1x1x?xf32>, tensor<1x1x1xf32>) -> tensor<1x1x?xf32>
      return
    }}"""
    assert (specials_of(pyshardy.load(text).text(generic=generic)) == ()) == is_finite


def test_which_of_equal_numbers_a_window_selects_is_up_to_xla() -> None:
    """Windows of two columns of which the first and the last are half outside: XLA does not select the first, alone."""
    assert compare_numbers(FAMILIES["typed"](625014), 625014).verdict is Verdict.EQUAL


def test_inputs_depend_on_the_seed_and_have_all_types() -> None:
    ports = pyshardy.partition(pyshardy.load(PRODUCT)).inputs
    first, again, second = (inputs_for(ports, seed) for seed in (2, 2, 3))
    for one, same, other in zip(first, again, second):
        np.testing.assert_array_equal(one, same)
        assert not np.array_equal(one, other)
        assert np.any(one)


def test_loops_of_programs_end() -> None:
    text = ending("""func.func @main(%n: tensor<i32>) -> tensor<i32> {
      %0:2 = stablehlo.while(%i = %n, %m = %n) : tensor<i32>, tensor<i32> cond {
        %p = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do { stablehlo.return %i, %m : tensor<i32>, tensor<i32> }
      return %0#0 : tensor<i32>
    }""")
    assert text.count("stablehlo.add") == 1
