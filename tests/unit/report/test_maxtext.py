"""MaxText's golden files as locks of inputs."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.report.lock_files import parse_lock

MESH = {"axis_names": ["data", "stage", "fsdp", "tensor"], "shape": {"data": 1, "stage": 1, "fsdp": 4, "tensor": 2}}
KERNEL = ".params/['params']/['decoder']/['layers']/['mlp']/['wi_0']/['kernel']"
ENTRIES: dict[str, Any] = {
    ".step": {"mesh": MESH, "partition_spec": [], "shape": []},
    KERNEL: {"mesh": MESH, "partition_spec": [["fsdp", "data"], "stage", ["tensor"]], "shape": [64, 3, 32]},
    ".opt_state/[0]/.mu/['params']/['a/b']": {"mesh": MESH, "partition_spec": [None, "tensor"]},
}
PROGRAM = """
sdy.mesh @mesh = <["data"=1, "stage"=1, "fsdp"=4, "tensor"=2]>
func.func @main(
  %0: tensor<i32> loc("state.step"),
  %1: tensor<64x3x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}, {"tensor"}]>}
    loc("state.params['params']['decoder']['layers']['mlp']['wi_0']['kernel']"),
  %2: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"tensor"}]>}
    loc("state.opt_state[0].mu['params']['a/b']"),
  %3: tensor<8x8xf32> loc("data['inputs']")) -> tensor<4x8xf32> {
  return %2 : tensor<4x8xf32>
}"""


def test_entries() -> None:
    lock = parse_lock(json.dumps(ENTRIES))
    assert (lock.covers, lock.meshes[0].axes) == ("inputs", "fsdp=4, tensor=2")
    assert {(row.name, row.tensor, row.sharding) for row in lock.inputs} == {
        (".step", "[]", "replicated"),
        (KERNEL.replace("/", ""), "[64, 3, 32]", "P('fsdp', None, 'tensor')"),
        (".opt_state[0].mu['params']['a/b']", "", "P(None, 'tensor')"),
    }


def test_a_program_that_is_sharded_alike() -> None:
    assert pyshardy.check(PROGRAM, parse_lock(json.dumps(ENTRIES)))


@pytest.mark.parametrize(
    "entry, before, after",
    [
        ({"partition_spec": ["tensor", None, "fsdp"]}, "[64, 3, 32] P('tensor', None, 'fsdp')", "[64, 3, 32] P('fsdp', None, 'tensor')"),
        ({"shape": [64, 3, 16]}, "[64, 3, 16] P('fsdp', None, 'tensor')", "[64, 3, 32] P('fsdp', None, 'tensor')"),
    ],
)  # fmt: skip
def test_one_that_is_not(entry: dict[str, Any], before: str, after: str) -> None:
    found = pyshardy.check(PROGRAM, parse_lock(json.dumps(ENTRIES | {KERNEL: ENTRIES[KERNEL] | entry})))
    assert not found and found.totals == ()
    (change,) = found.changes
    assert change.name == "state.params['params']['decoder']['layers']['mlp']['wi_0']['kernel']"
    assert [text.removesuffix(" (annotated)") for text in (*change.before, *change.after)] == [before, after]


def test_a_path_that_the_program_does_not_have_and_another_mesh() -> None:
    mesh = {"axis_names": ["fsdp", "tensor"], "shape": {"fsdp": 2, "tensor": 4}}
    lock = parse_lock(json.dumps({".params/['w']": {"mesh": mesh, "partition_spec": ["fsdp"]}}))
    found = pyshardy.check(PROGRAM, lock)
    assert [(change.kind, change.verb, change.name) for change in found.changes] == [
        ("mesh", "changed", "mesh"),
        ("input", "removed", ".params['w']"),
    ]


@pytest.mark.parametrize(
    "data, got",
    [
        ({}, "JSON without entries"),
        ({"a": {"partition_spec": ["embed"], "shape": [3]}}, "entries without a mesh, such as those of logical axes"),
        ({"a": {"mesh": MESH}}, "an entry of another form"),
        ({"a": {"mesh": MESH, "partition_spec": [["fsdp"], 3]}}, "an entry of another form"),
        ({"a": 3}, "an entry of another form"),
        ({"a": {"mesh": MESH, "partition_spec": ["model"]}}, "or an axis that the mesh does not have"),
        ({"a": {"mesh": MESH, "partition_spec": [], "shape": ["x"]}}, "an entry of another form"),
    ],
)
def test_other_files_are_refused(data: object, got: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_lock(json.dumps(data), "golden.json")
    assert got in str(raised.value) and "golden.json" in str(raised.value)
    with pytest.raises(UsageError, match="text that is neither TOML nor JSON"):
        parse_lock("{")
