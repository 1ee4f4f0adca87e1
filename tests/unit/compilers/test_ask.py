"""Asking XLA for CPUs, which is always installed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import pyshardy
from pyshardy.compilers import ask as module_of_ask
from pyshardy.compilers.ask import ask
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidModuleError, ShardyError, UsageError
from pyshardy.results.compiled import check_with_compiler

from .programs import REPLICATED, SUMMED

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def replicated() -> pyshardy.Partition:
    return pyshardy.partition(REPLICATED, compiler="cpu")


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    """What a test made a compiler say is no answer for the next one."""
    yield
    pyshardy.clear_caches()


def test_shardings_are_those_of_the_compiler_with_the_names_of_the_user(replicated: pyshardy.Partition) -> None:
    propagated = replicated.propagated
    assert [tensor.name for tensor in propagated.inputs] == ["u", "v", "w"]
    assert [str(tensor.sharding) for tensor in (propagated.inputs[2], propagated.outputs[0])] == [
        '<@mesh, [{}, {"x", "y"}, {}]>'
    ] * 2
    assert propagated.warnings == ()
    assert str(propagated.explain("w")).startswith("`w`, shape [64, 64, 64]: ")


def test_the_first_line_names_who_speaks(replicated: pyshardy.Partition) -> None:
    lines = str(replicated).splitlines()
    assert lines[0].startswith("as compiled by XLA for CPUs (jaxlib 0.")
    assert lines[0].endswith(" for 8 CPU devices")
    assert lines[1] == "module @main on 8 devices: x=4, y=2"
    assert replicated.to_json()["compiler"] == lines[0].removeprefix("as compiled by ")
    assert str(pyshardy.propagate(REPLICATED)).splitlines()[0].startswith("function @step")


def test_a_replicated_tensor_has_its_place_its_shardings_and_its_bytes(replicated: pyshardy.Partition) -> None:
    (found,) = replicated.replications
    assert (found.op, found.shape, found.dtype, found.bytes) == ("jit(step)/mul", (64, 64, 64), "f32", 1 << 20)
    assert found.place is not None
    assert found.place[:2] == ("model.py", 3)
    assert [str(one) for one in (found.before, found.after)] == [
        '<@mesh, [{"y"}, {}, {"x"}]>', '<@mesh, [{}, {"x", "y"}, {}]>'
    ]  # fmt: skip
    assert str(found) == (
        "the result of `mul` at model.py:3, f32[64, 64, 64], is gathered whole on every device, 1.0 MiB: "
        "the compiler cannot go from P('y', None, 'x') to P(None, ('x', 'y')) step by step"
    )
    assert "1 tensor is gathered whole on every device, 1.0 MiB in all" in str(replicated.propagated)


def test_a_remedy_was_tried(replicated: pyshardy.Partition) -> None:
    (found,) = replicated.remedies()
    assert [sharding for _, sharding in found.constraints] == [parse_sharding('<@mesh, [{"y"}, {"x"}, {}]>')]
    assert found.replicated_bytes == (1 << 20, 0)
    before, after = found.sent_bytes
    assert before == replicated.traffic.sent_bytes_per_device
    assert after < before / 4
    assert str(found).startswith(
        "what helps: jax.lax.with_sharding_constraint(..., P('y', 'x')) on the result of `mul` at model.py:3. Tried: "
    )


def test_a_program_that_replicates_nothing_needs_no_remedy() -> None:
    found = pyshardy.partition(SUMMED, compiler="cpu")
    assert (found.replications, found.remedies()) == ((), ())
    assert "gathered whole" not in str(found)


def test_collectives_have_their_axes_and_their_reason() -> None:
    found = pyshardy.partition(SUMMED, compiler="cpu")
    (row,) = found.traffic.collectives
    assert (row.kind, row.axes, row.sent_bytes_per_device) == ("all_reduce", ('"x"',), 16)
    (story,) = found.collectives
    assert "takes the sum over a dimension that is split" in story.reason


def test_an_edit_asks_again() -> None:
    before = pyshardy.partition(SUMMED, compiler="cpu")
    edit = before.edit({"arg0": parse_sharding('<@mesh, [{}, {"x"}]>')})
    assert "the compiler is asked again" in str(edit)
    assert edit.result.traffic.collectives == ()


def test_the_program_of_a_compiler_does_not_run_here() -> None:
    with pytest.raises(UsageError, match="leave the compiler out"):
        pyshardy.partition(SUMMED, compiler="cpu").run([[1.0] * 4] * 8)


def test_a_program_without_a_mesh_is_refused() -> None:
    with pytest.raises(UsageError, match="asking a compiler: got a program without a mesh"):
        pyshardy.propagate(
            "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }", compiler="cpu"
        )


def test_a_compiler_that_decides_otherwise_is_a_fault_of_ours() -> None:
    module = pyshardy.load(SUMMED)
    answer = ask(module, "cpu")
    propagated = pyshardy.propagate(module, compiler="cpu").module
    assert check_with_compiler(propagated, answer).differences == ()
    other = pyshardy.propagate(SUMMED.replace('[{"x"}, {}]', '[{}, {"x"}]'), compiler="cpu").module
    assert {found.where for found in check_with_compiler(other, answer).differences} >= {"input arg0"}


def test_a_fault_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = ask(pyshardy.load(SUMMED.replace('[{"x"}, {}]', '[{}, {"x"}]')), "cpu")
    right = ask(pyshardy.load(SUMMED), "cpu")
    pyshardy.clear_caches()
    monkeypatch.setattr(module_of_ask, "run_job", lambda *_: replace(right, decided=wrong.decided))
    warnings = pyshardy.propagate(SUMMED, compiler="cpu").warnings
    assert any(
        warning.startswith("a fault of pyshardy: input arg0 is ") and "please report it" in warning
        for warning in warnings
    )
    altered = pyshardy.propagate(SUMMED, compiler="cpu", conservative=True)  # which the compiler does not know
    assert not any("a fault of pyshardy" in warning for warning in altered.warnings)


def test_a_program_that_the_compiler_did_not_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = ask(pyshardy.load(SUMMED), "cpu")
    pyshardy.clear_caches()
    monkeypatch.setattr(module_of_ask, "run_job", lambda *_: replace(answer, partitioned=None, error="no rule for it"))
    propagated = pyshardy.propagate(SUMMED, compiler="cpu")
    assert str(propagated.inputs[0].sharding) == '<@mesh, [{"x"}, {}]>'
    with pytest.raises(ShardyError, match="asking a compiler to partition a program: got no rule for it"):
        pyshardy.partition(propagated)


def test_an_input_that_is_replicated_has_a_remedy() -> None:
    program = REPLICATED.replace("stablehlo.multiply %u, %v", "stablehlo.tanh %u")
    found = pyshardy.partition(program, compiler="cpu")
    (replication,) = found.replications
    assert replication.name == "the input `u`"
    (remedy,) = found.remedies()
    assert str(remedy).startswith("what helps: jax.lax.with_sharding_constraint(..., P('y', 'x')) on the input `u`. ")
    assert remedy.replicated_bytes == (1 << 20, 0)


def test_a_line_at_which_the_compiler_sends_more_is_named(replicated: pyshardy.Partition) -> None:
    own = pyshardy.partition(REPLICATED).traffic.sent_bytes_per_device
    (found,) = replicated.excesses()
    assert found.place[:2] == ("model.py", 3)
    assert found.sent_bytes == replicated.traffic.sent_bytes_per_device
    assert own * 2 <= found.sent_bytes
    assert str(found).startswith("model.py:3: 896.0 KiB as compiled, ")
    assert pyshardy.partition(SUMMED, compiler="cpu").excesses() == ()
    assert pyshardy.partition(SUMMED).excesses() == ()


def test_the_page_names_who_speaks_and_what_is_gathered_whole(replicated: pyshardy.Partition, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    replicated.report(path, format="json", hints=False)
    overview = json.loads(path.read_text())["overview"]
    assert overview["cost"][0] == ["as compiled by", str(replicated.answer)]
    assert overview["warnings"][0] == str(replicated.replications[0])


def test_a_partitioner_in_python_is_not_known_to_the_compiler() -> None:
    call = "stablehlo.custom_call @CustomSPMDPartitioning(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>"
    program = SUMMED.replace("%0 = stablehlo.constant", f"%b = {call}\n  %0 = stablehlo.constant")
    propagated = pyshardy.propagate(program, compiler="cpu")
    assert str(propagated.inputs[0].sharding) == '<@mesh, [{"x"}, {}]>'
    with pytest.raises(ShardyError, match="got a partitioner that is a Python function"):
        pyshardy.partition(propagated)


def test_an_invalid_program_of_a_compiler_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"""func.func @main(%a: tensor<16xf32>, %i: tensor<i32>) -> tensor<32xf32> {
      %0 = "stablehlo.dynamic_slice"(%a, %i) <{slice_sizes = array<i64: 32>}>
        : (tensor<16xf32>, tensor<i32>) -> tensor<32xf32> loc("gather.5")
      return %0 : tensor<32xf32>
    }"""
    module = pyshardy.load("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }")
    monkeypatch.setattr(module_of_ask, "hlo_module_proto", lambda proto: proto)
    monkeypatch.setattr(module_of_ask, "bytecode_of_hlo_proto", lambda proto, name: text)
    with pytest.raises(InvalidModuleError) as refused:
        module_of_ask._module(b"", module, "what a compiler partitioned")
    said = str(refused.value)
    assert said.startswith("reading what a compiler partitioned: got has slice size 32 greater than dimension size 16")
    assert "at gather.5" in said and "other shardings" in said and len(said.splitlines()) == 3
