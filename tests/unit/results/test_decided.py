from __future__ import annotations

from pathlib import Path

import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.results.decided import compare, dump_shardings

from ..frontend.hlo_texts import DECIDED, INPUT, write_dump


def test_the_shardings_xla_decided_on(tmp_path: Path) -> None:
    decided = dump_shardings(write_dump(tmp_path))
    assert Path(decided.where).name == "02.after_propagation.mlir"
    assert [str(tensor.sharding) for tensor in decided.inputs] == ['<@mesh, [{"data"}, {}]>', "None"]
    assert [str(tensor.sharding) for tensor in decided.outputs] == ['<@mesh, [{"data"}, {}]>']


def test_the_last_step_where_that_of_propagation_is_missing(tmp_path: Path) -> None:
    decided = dump_shardings(f"{write_dump(tmp_path, input=INPUT, output=INPUT)}::jit_f")
    assert Path(decided.where).name == "04.output_module.mlir"
    assert str(decided.inputs[0].sharding) == '<@mesh, [{"data"}, {}]>'


def test_nothing_differs(tmp_path: Path) -> None:
    found = compare(pyshardy.propagate(pyshardy.load(write_dump(tmp_path))).module, dump_shardings(tmp_path))
    assert (found.differences, found.values, found.ops) == ((), 3, 2)
    assert str(found) == "compared 3 inputs and outputs; 2 results of ops: 0 differ"
    assert found.to_json() == {"values": 3, "ops": 2, "differences": []}


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ('[{"data"}, {}]>},', '[{"model"}, {}]>},', "input arg0"),
        ("%arg1: tensor<16x4xf32>)", '%arg1: tensor<16x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})',
         "input arg1"),
        ('[{"data"}, {}]>})', '[{}, {"data"}]>})', "output result"),
        ('tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>}', "tanh %0",
         "result 1 (stablehlo.tanh)"),
        ('"data"=4, "model"=2]>', '"data"=4, "model"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>', "input arg0"),
    ],
)  # fmt: skip
def test_another_sharding_is_noticed(old: str, new: str, where: str, tmp_path: Path) -> None:
    assert old in DECIDED
    write_dump(tmp_path, input=INPUT, decided=DECIDED.replace(old, new, 1))
    found = compare(pyshardy.propagate(pyshardy.load(tmp_path)).module, dump_shardings(tmp_path))
    assert where in [difference.where for difference in found.differences]
    assert f"{where}: " in str(found)
    if "device_ids" not in new:
        assert len(found.differences) == 1


def test_other_names_of_axes_do_not_matter(tmp_path: Path) -> None:
    renamed = DECIDED.replace('"data"', '"axis_0"').replace('"model"', '"axis_1"').replace("@mesh", "@other")
    write_dump(tmp_path, input=INPUT, decided=renamed)
    found = compare(pyshardy.propagate(pyshardy.load(tmp_path)).module, dump_shardings(tmp_path))
    assert (found.differences, found.ops) == ((), 2)


def test_other_ops_are_not_compared(tmp_path: Path) -> None:
    write_dump(tmp_path, input=INPUT, decided=DECIDED.replace("stablehlo.tanh", "stablehlo.sine"))
    found = compare(pyshardy.propagate(pyshardy.load(tmp_path)).module, dump_shardings(tmp_path))
    assert (found.differences, found.values, found.ops) == ((), 3, None)
    assert "the ops are not the same" in str(found)


def test_another_program_is_refused(tmp_path: Path) -> None:
    write_dump(tmp_path, input=INPUT, decided=DECIDED.replace("8x16", "8x32").replace("16x4", "32x4"))
    with pytest.raises(UsageError, match="got 2 inputs here and 2 there, not all of the same types"):
        compare(pyshardy.propagate(pyshardy.load(tmp_path)).module, dump_shardings(tmp_path))


def test_a_dump_without_the_steps_of_shardy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"got no .*02\.after_propagation\.mlir, needed a dump with the steps"):
        dump_shardings(write_dump(tmp_path, mlir=INPUT))
