"""Arguments of wrong types and values, one by one in the place of good ones: an error of ours, or an answer, nothing else.

What a function of the user raises, and what JAX says of its arguments and shardings, is passed on, and not tried here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.hardware import Hardware, Measured, Network
from pyshardy.errors import ShardyError

MESH = pyshardy.Mesh({"x": 4, "y": 2})
JAX_MESH = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("x", "y"))
SHARDING = pyshardy.TensorSharding("mesh", [["x"], None])
TEXT = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>} loc("a")) -> tensor<8x4xf32> {
  %0 = stablehlo.tanh %a : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""
MODULE = pyshardy.load(TEXT)
RESULT, PARTITION = pyshardy.propagate(MODULE), pyshardy.partition(MODULE)
LOCK = pyshardy.lock(RESULT)
SPEC = pyshardy.OpSpec("stablehlo.add", [(4,), (4,)], [(4,)])
CHIP = find_hardware("v5p")
X = np.ones((8, 4), np.float32)
HOSTILE: tuple[Any, ...] = (
    None, 0, 1, -1, True, 2**31, 2**63, 2**64, 10**30, float("nan"), float("inf"), complex(1, 2), "", "x", "\0", "\udcff",
    "a" * 10_000, "@", "{", b"", b"\xff", b"ML\xefR", (), [], [None], [[]], [[[]]], ["x", "x"], ["z"], {}, {"x": 0},
    {"x": 2**63}, {"x": "4"}, {1: 2}, {"": 2}, {None: None}, {"a": object()}, {"a": "zz"}, {"a": [["x"]]}, {"\udcff": "x"},
    object(), int, range(3), np.array(3), np.int64(-1), np.array(["x"]), Path("/missing"), Path("/"), MESH, SHARDING, MODULE,
    RESULT, PARTITION, pyshardy.AxisRef("x", 1, 2), pyshardy.PartitionSpec("zz"), pyshardy.PartitionOptions(),
    pyshardy.Engine.LOCAL, ..., set(), {"x"}, ValueError("x"), slice(1), memoryview(b"x"), jax.devices(), P("x"), JAX_MESH,
    NamedSharding(JAX_MESH, P("x")),
)  # fmt: skip


class Good(NamedTuple):
    """A call that is right."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}  # noqa: RUF012 (never changed)


def fields_of(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}


def chosen(which: Any) -> Any:
    """Values of the program; a number beyond the last is an `IndexError`, as for every sequence."""
    with suppress(IndexError):
        return RESULT.values[which]


def reported(**keywords: Any) -> None:
    with TemporaryDirectory() as folder:
        RESULT.report(Path(folder, "report"), **keywords)


def registered(partitioner: Any) -> None:
    try:
        pyshardy.register_partitioner(partitioner)
    finally:
        pyshardy.register_partitioner(None)


def with_user_code(user_code: Any, library: Any) -> None:
    try:
        pyshardy.set_user_code(user_code, library)
    finally:
        pyshardy.set_user_code()


CALLS = {
    "AxisRef": Good(pyshardy.AxisRef, ("x", 1, 2)),
    "DimSharding": Good(pyshardy.DimSharding, (["x"],), {"priority": 1}),
    "Mesh": Good(pyshardy.Mesh, ({"x": 4}, None)),
    "PartitionSpec": Good(pyshardy.PartitionSpec, ("x",), {"priorities": None, "replicated": (), "unreduced": ()}),
    "PartitionSpec.of": Good(pyshardy.PartitionSpec.of, (SHARDING,)),
    "PartitionSpec.sharding": Good(pyshardy.PartitionSpec("x").sharding, ("mesh", 2)),
    "TensorSharding": Good(pyshardy.TensorSharding, ("mesh", ["x"], (), (), "sum")),
    "TensorSharding.fully_replicated": Good(pyshardy.TensorSharding.fully_replicated, ("mesh", 2)),
    "TensorSharding.of": Good(pyshardy.TensorSharding.of, (SHARDING,)),
    "OpSpec": Good(pyshardy.OpSpec, ("stablehlo.add", [(4,)], [(4,)], {})),
    "Rule": Good(pyshardy.Rule, ([4], [[[0]]], [[[0]]], (), (), False)),
    "Module.parse": Good(pyshardy.Module.parse, (TEXT,), {"allow_unregistered_dialects": False}),
    "annotate": Good(pyshardy.annotate, (MODULE, {"a": "x"}, None)),
    "Budgets": Good(pyshardy.Budgets, ("1GiB", "1GB", False, ("all_gather",))),
    "Lock": Good(pyshardy.Lock, (), fields_of(LOCK)),
    "check": Good(pyshardy.check, (RESULT, LOCK), {"hardware": None, "budgets": None}),
    "lock": Good(pyshardy.lock, (RESULT,), {"hardware": None, "budgets": None, "strategy": "basic"}),
    "load_lock": Good(lambda path: path == 0 or pyshardy.load_lock(path), (0,)),
    "cost": Good(pyshardy.cost, (MODULE, "v5p"), {"networks": None, "shape": None, "options": None}),
    "diff": Good(pyshardy.diff, ({"a": "x"}, {"a": "y"}), {"program": MODULE}),
    "draw": Good(pyshardy.draw, (SHARDING, (8, 4), MESH)),
    "from_gspmd": Good(pyshardy.from_gspmd, ("{devices=[4,2]<=[8]}", MESH, 2, "mesh")),
    "from_torch": Good(pyshardy.from_torch, (pyshardy.to_torch(SHARDING, MESH), MESH, 2, "mesh")),
    "to_gspmd": Good(pyshardy.to_gspmd, (SHARDING, MESH)),
    "to_torch": Good(pyshardy.to_torch, (SHARDING, MESH)),
    "local_shape": Good(pyshardy.local_shape, (SHARDING, MESH, [8, 4])),
    "load": Good(pyshardy.load, (TEXT,), {"module": None}),
    "load of a mesh": Good(
        lambda mesh: pyshardy.load(lambda a: a, jax.ShapeDtypeStruct((8,), float), mesh=mesh), (MESH,)
    ),
    "load_file": Good(pyshardy.load_file, (Path(__file__).parents[2] / "examples" / "mlp.mlir",), {"mesh": None}),
    "load_text": Good(pyshardy.load_text, (TEXT,), {"mesh": None, "allow_unregistered_dialects": False}),
    "parse_mesh": Good(pyshardy.parse_mesh, ('<["x"=4]>',)),
    "parse_sharding": Good(pyshardy.parse_sharding, ('<@mesh, [{"x"}]>',)),
    "partition": Good(pyshardy.partition, (RESULT,), {"options": None, "propagate_options": None}),
    "propagate": Good(pyshardy.propagate, (MODULE, None), {"strategy": "basic", "trace": False}),
    "propagation_barrier": Good(lambda to: pyshardy.propagation_barrier(np.ones(2), to), ("none",)),
    "rule_of": Good(pyshardy.rule_of, (SPEC, False)),
    "run": Good(lambda a, **k: pyshardy.run(PARTITION, a, **k), (np.ones((8, 4), np.float32),), {"engine": None}),
    "run_pipeline": Good(pyshardy.run_pipeline, (MODULE, "sdy-close-shardings")),
    "set_user_code": Good(with_user_code, ("flax.linen", ["maxtext"])),
    "unregister_rule": Good(lambda name: name == "@" or pyshardy.unregister_rule(name), ("@",)),
    "explain": Good(RESULT.explain, ("a",)),
    "after_priority": Good(RESULT.after_priority, (0,)),
    "edit": Good(RESULT.edit, ({"a": "x"},)),
    "Diagnostic": Good(lambda *args: str(pyshardy.Diagnostic(*args)), (pyshardy.Severity.WARNING, "beware", None, ())),
    "Hardware": Good(Hardware, (), fields_of(CHIP)),
    "Measured": Good(Measured, ("all_gather", 8, (1e6, 4e6), (1e-4, 4e-4))),
    "Mesh.axis_size": Good(lambda name: name == "x" or MESH.axis_size(name), ("x",)),
    "Mesh.coordinates": Good(MESH.coordinates, (5,)),
    "Mesh.has_axis": Good(MESH.has_axis, ("x",)),
    "Module.text": Good(MODULE.text, (), {"debug_info": False, "generic": False}),
    "Network": Good(Network, (), fields_of(CHIP.networks[0])),
    "PartitionOptions": Good(pyshardy.PartitionOptions, (), fields_of(pyshardy.PartitionOptions())),
    "PropagateOptions": Good(pyshardy.PropagateOptions, (), fields_of(pyshardy.PropagateOptions())),
    "TensorSharding.with_dims": Good(SHARDING.with_dims, (["x", None],)),
    "TensorSharding.with_mesh": Good(SHARDING.with_mesh, ("m",)),
    "compiled_collectives": Good(pyshardy.compiled_collectives, (PARTITION, "local", None)),
    "constrain": Good(lambda *args: pyshardy.constrain(X, *args), (pyshardy.PartitionSpec("x"), {"x": 4, "y": 2})),
    "executable": Good(PARTITION.executable, (None, "local")),
    "hints": Good(PARTITION.hints, (1,)),
    "input_shardings": Good(RESULT.input_shardings, (None, "refuse")),
    "jit": Good(lambda mesh: pyshardy.jit(lambda a: a * 2, mesh=mesh), ({"x": 4, "y": 2},)),
    "load_plan": Good(lambda path: path == 0 or pyshardy.load_plan(path), (0,)),
    "register_partitioner": Good(registered, (None,)),
    "report": Good(reported, (), {"compare": None, "format": "json", "hints": False}),
    "shard_alike": Good(pyshardy.shard_alike, (X, X)),
    "values": Good(chosen, ("a",)),
    "values.named": Good(RESULT.values.named, ("a",)),
}


def tried(good: Good, place: int | str, value: Any) -> str:
    """What a call raises that is no error of ours, with a value in one place; nothing if all is well."""
    args, keywords = list(good.args), dict(good.keywords)
    if isinstance(place, int):
        args[place] = value
    else:
        keywords[place] = value
    try:
        repr(good.function(*args, **keywords))
    except ShardyError as error:
        return "" if str(error) else "an empty message"
    except Exception as error:  # noqa: BLE001 (whatever it is, it is wrong)
        return f"{place}={value!r:.60}: {type(error).__name__}: {error}"[:300]
    return ""


@pytest.mark.slow_cases("Module.parse", "cost", "diff", "load_text", "report")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments(name: str) -> None:
    good = CALLS[name]
    good.function(*good.args, **good.keywords)
    places = [*range(len(good.args)), *good.keywords]
    assert [found for place in places for value in HOSTILE if (found := tried(good, place, value))] == []


@pytest.mark.parametrize("path", [None, 5, ["x"], b"x", "\0", "/"])
def test_results_are_not_written_to_what_is_no_path(path: Any) -> None:
    plan = pyshardy.search(TEXT, budget_s=1, candidates=1)
    lock = lambda path: pyshardy.write_lock(RESULT, path)  # noqa: E731 (as the others)
    for write in (plan.save, LOCK.save, lock, lambda path: RESULT.report(path, format="json", hints=False)):
        with pytest.raises(pyshardy.UsageError, match="writing|saving a plan|locking"):
            write(path)


def test_other_errors_are_found() -> None:
    wrong = Good(lambda value: [][value], (0,))
    assert tried(wrong, 0, 1) == "0=1: IndexError: list index out of range"
    assert tried(Good(pyshardy.Mesh, ({"x": 2},)), 0, 1) == ""
    assert tried(Good(len, ([],)), 0, []) == ""
