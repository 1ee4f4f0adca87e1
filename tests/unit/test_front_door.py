"""What a user may give: bad values get a clear error, and what a person would expect to work does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import InvalidShardingError, ShardyError, UsageError

MLP = Path(__file__).parents[2] / "examples" / "mlp.mlir"
X = np.arange(8, dtype=np.float32)
DOUBLE = """sdy.mesh @m = <["x"=8]>
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def jax_mesh() -> jax.sharding.Mesh:
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("a", "b"))


def double(x: Any) -> Any:
    return x * 2


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a number as a mesh": (lambda: pyshardy.TensorSharding(3, []), "got 3 as the mesh, needed the name of a mesh"),
    "no dimensions": (lambda: pyshardy.TensorSharding("m", 5), "got 5, needed one sharding per dimension"),
    "text for dimensions": (lambda: pyshardy.TensorSharding("m", "x"), r"got 'x', needed one .*\n  try: \['x'\]"),
    "a number as a dimension": (lambda: pyshardy.TensorSharding("m", [5]), "got an int for a dimension"),
    "a number as an axis": (lambda: pyshardy.TensorSharding("m", [[5]]), "got 5 as an axis"),
    "a replicated number": (lambda: pyshardy.TensorSharding("m", [], [5]), "got 5 as an axis"),
    "an unknown reduction": (
        lambda: pyshardy.TensorSharding("m", unreduced=["x"], reduction="mx"), "got the reduction 'mx', needed one of"
    ),
    "an axis that a mesh does not have": (
        lambda: pyshardy.TensorSharding(pyshardy.Mesh({"x": 2}), ["y"]), 'got unknown axis name "y", needed one of'
    ),
    "the same in notation": (
        lambda: pyshardy.parse_sharding('<mesh<["x"=2]>, [{"y"}]>'), 'got unknown axis name "y", needed one of'
    ),
    "a dimension of a number": (lambda: pyshardy.DimSharding(5), "got an int, needed a list of axes"),
    "a dimension of numbers": (lambda: pyshardy.DimSharding([5]), "got 5 as an axis"),
    "a dimension of a tuple of numbers": (lambda: pyshardy.DimSharding((5,)), "got 5 as an axis"),
    "a dimension of lists": (lambda: pyshardy.DimSharding([["x"]]), r"got \['x'\] as an axis"),
    "a dimension of text": (lambda: pyshardy.DimSharding("xy"), r"got the string 'xy', .*\n  try: \['xy'\]"),
    "an axis without a name": (lambda: pyshardy.AxisRef(5), "got name 5, needed a string"),
    "a mesh of a number": (lambda: pyshardy.Mesh(5), "got an int, needed names with sizes"),
    "a mesh of text": (lambda: pyshardy.Mesh("x=2"), "got 'x=2', needed names with sizes"),
    "a mesh of names": (lambda: pyshardy.Mesh(["xy"]), "got 'xy' among the axes"),
    "a mesh of triples": (lambda: pyshardy.Mesh([("x", 2, 3)]), r"got \('x', 2, 3\) among the axes"),
    "a mesh of a list": (lambda: pyshardy.Mesh({"x": [2]}), "as axes, needed an immutable value"),
    "a mesh of a number as a name": (lambda: pyshardy.Mesh({3: 2}), "got axis name 3, needed a string"),
    "one device id": (lambda: pyshardy.Mesh({"x": 2}, 5), "needed names, sizes and ids"),
    "a strategy that there is not": (
        lambda: pyshardy.PropagateOptions(strategy="nope"),
        "setting the option strategy of propagation: got 'nope', needed one of basic, aggressive, basic-then",
    ),
    "a view that there is not": (lambda: pyshardy.PropagateOptions(view="xl"), r"got 'xl', .*\n  try: xla"),
    "a number for a choice": (lambda: pyshardy.PropagateOptions(trace=3), "got 3, needed True or False"),
    "text for a choice": (
        lambda: pyshardy.PartitionOptions(mesh_axes_groups="yes"), "got 'yes', needed True, False or None"
    ),
    "a number for a folder": (lambda: pyshardy.PartitionOptions(dump_directory=5), "got an int, needed a path"),
    "propagating a number": (lambda: pyshardy.propagate(5), "got an int, needed a path, StableHLO"),
    "partitioning a number": (lambda: pyshardy.partition(5), "got an int, needed a path, StableHLO"),
    "running a number": (lambda: pyshardy.run(5), "got an int, needed a path, StableHLO"),
    "an option that there is not": (
        lambda: pyshardy.propagate(MLP, stratgy="basic"),  # type: ignore[call-arg]
        "propagating: got the option 'stratgy', needed one of strategy,.*\n  try: strategy",
    ),
    "an option of partitioning that there is not": (
        lambda: pyshardy.partition(MLP, halo=False), "got the option 'halo', needed one of .*halo_exchange"  # type: ignore[call-arg]
    ),
    "options of another kind": (
        lambda: pyshardy.partition(MLP, pyshardy.PropagateOptions()),  # type: ignore[arg-type]
        "partitioning: got a PropagateOptions as options, needed PartitionOptions",
    ),
    "a value that is none": (lambda: pyshardy.propagate(MLP, conservative="very"), "got 'very', needed True or"),  # type: ignore[arg-type]
    "no arrays": (lambda: pyshardy.run(pyshardy.propagate(DOUBLE)), "got 0 arrays, needed 1"),
    "what is no array": (lambda: pyshardy.run(DOUBLE, object()), r"reading the input arg0: got object\[\]"),
    "one device eight times": (
        lambda: pyshardy.run(DOUBLE, X, devices=[jax.devices()[0]] * 8),
        "choosing the devices of a program: got the device .* twice, needed every device once",
    ),
    "numbers as devices": (lambda: pyshardy.run(DOUBLE, X, devices=[0, 1]), "got an int among the devices"),
    "a number of devices": (lambda: pyshardy.run(DOUBLE, X, devices=8), "got an int, needed devices of JAX"),
    "a number as an engine": (lambda: pyshardy.run(DOUBLE, X, engine=5), "got the engine 5, needed one of local"),
    "compiling a module": (
        lambda: pyshardy.compiled_collectives(pyshardy.load(DOUBLE)), "got a Module, needed the result of partition or"
    ),
    "a rule of a number": (lambda: pyshardy.register_rule("@x", 5), "got 5 as the rule, needed einsum notation"),
    "a rule for a number": (lambda: pyshardy.register_rule(5, "i -> i"), "got 5 as a name, needed the name of an op"),
    "a rule for nobody": (lambda: pyshardy.register_rule("", "i -> i"), "got '' as a name"),
    "the rule of a number": (lambda: pyshardy.rule_of(5), "got an int, needed an OpSpec"),
    "a name with a zero byte": (lambda: pyshardy.load("a\0b"), r"reading 'a\\x00b': got a name that no file can have"),
    "no name": (lambda: pyshardy.load(""), "got an empty name"),
    "a function without arguments": (
        lambda: pyshardy.propagate(jax.jit(double)), r"missing a required argument: 'x'.*\n  try: load\(function, "
    ),
    "too many arguments": (lambda: pyshardy.load(double, X, X), "got 2 example arguments: too many positional"),
    "text of a number": (lambda: pyshardy.load_text(5), "got an int, needed text or bytes"),
    "a file of a number": (lambda: pyshardy.load_file(5), "got an int, needed a path"),
    "a module of a number": (lambda: pyshardy.Module.parse(5), "got an int, needed text or bytecode"),
    "a mesh in notation of a number": (lambda: pyshardy.parse_mesh(5), "reading a mesh: got an int, needed text"),
    "a pipeline over a number": (lambda: pyshardy.run_pipeline(5, "symbol-dce"), "got an int, needed what load"),
    "a pipeline of a number": (
        lambda: pyshardy.run_pipeline(pyshardy.load(DOUBLE), 5), "got an int as the pipeline, needed text"
    ),
    "a port that there is not": (
        lambda: pyshardy.initialize_distributed("host:70000", 2, 0), "got the port 70000, needed one from 1 to 65535"
    ),
    "port zero": (lambda: pyshardy.initialize_distributed("host:0", 2, 0), "got the port 0, needed one from 1"),
    "a coordinator of a number": (lambda: pyshardy.initialize_distributed(5, 2, 0), "got the coordinator 5, needed"),
    "processes of text": (
        lambda: pyshardy.initialize_distributed("host:1", "2", 0), "got process_count '2', needed a whole number"
    ),
    "seconds of text": (
        lambda: pyshardy.initialize_distributed("host:1", 2, 0, "x"), "got timeout_s 'x', needed a number of seconds"
    ),
    "the local shape of a number": (lambda: pyshardy.local_shape(5, jax_mesh(), (8,)), "got an int, needed a Tensor"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_with_what_was_needed(what: str) -> None:
    action, message = REFUSED[what]
    with pytest.raises(ShardyError, match=f"(?s){message}"):
        action()


EXPECTED: dict[str, tuple[Callable[[], Any], str]] = {
    "a mesh of a mapping": (lambda: pyshardy.Mesh({"x": 2}), "Mesh([('x', 2)])"),
    "a mesh of a mesh": (lambda: pyshardy.Mesh(pyshardy.Mesh({"x": 2}, [1, 0])), "Mesh([('x', 2)], device_ids=[1, 0])"),
    "a mesh of JAX": (lambda: pyshardy.Mesh(jax_mesh()), "Mesh([('a', 4), ('b', 2)])"),
    "a mesh of JAX in another order": (
        lambda: pyshardy.Mesh(jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("a",))),
        "Mesh([('a', 8)], device_ids=[7, 6, 5, 4, 3, 2, 1, 0])",
    ),
    "a mesh of some devices": (
        lambda: pyshardy.Mesh(jax.sharding.Mesh(np.array(jax.devices()[4:6]), ("a",))),
        "Mesh([('a', 2)])",
    ),
    "an abstract mesh": (lambda: pyshardy.Mesh(jax_mesh().abstract_mesh), "Mesh([('a', 4), ('b', 2)])"),
    "names for dimensions": (lambda: pyshardy.TensorSharding("m", ["x"]), 'TensorSharding(<@m, [{"x"}]>)'),
    "lists, axes and None for dimensions": (
        lambda: pyshardy.TensorSharding("m", [("x", "y"), None, pyshardy.AxisRef("z")]),
        'TensorSharding(<@m, [{"x", "y"}, {}, {"z"}]>)',
    ),
    "a partition spec": (
        lambda: pyshardy.TensorSharding("m", P("x", None, ("y", "z"), P.UNCONSTRAINED)),
        'TensorSharding(<@m, [{"x"}, {}, {"y", "z"}, {?}]>)',
    ),
    "a partition spec with parts of sums": (
        lambda: pyshardy.TensorSharding("m", P("x", unreduced={"y"})),
        'TensorSharding(<@m, [{"x"}], unreduced={"y"}>)',
    ),
    "a sharding on a mesh of JAX": (
        lambda: pyshardy.TensorSharding(jax_mesh(), P("a")),
        'TensorSharding(<mesh<["a"=4, "b"=2]>, [{"a"}]>)',
    ),
    "a named sharding": (
        lambda: pyshardy.TensorSharding.of(NamedSharding(jax_mesh(), P(None, "b"))),
        'TensorSharding(<mesh<["a"=4, "b"=2]>, [{}, {"b"}]>)',
    ),
    "the local shape under a named sharding": (
        lambda: pyshardy.local_shape(NamedSharding(jax_mesh(), P("a")), jax_mesh(), (8, 3)),
        "(2, 3)",
    ),
    "a partition spec of several partial values": (
        lambda: pyshardy.TensorSharding("m", P("x", unreduced={"z", "y"})),
        'TensorSharding(<@m, [{"x"}], unreduced={"y", "z"}>)',
    ),
    "a reduction by name": (
        lambda: pyshardy.TensorSharding("m", unreduced=["x"], reduction="max"),
        'TensorSharding(<@m, [], unreduced=max{"x"}>)',
    ),
    "numpy's booleans": (lambda: pyshardy.PropagateOptions(trace=np.True_).trace, "True"),
    "a folder as a path": (lambda: pyshardy.PartitionOptions(dump_directory=Path("d")).dump_directory, "'d'"),
}


@pytest.mark.parametrize("what", EXPECTED)
def test_what_a_person_expects_to_work_does(what: str) -> None:
    action, shown = EXPECTED[what]
    assert repr(action()) == shown


SOURCES: dict[str, Callable[[], Any]] = {
    "text": lambda: DOUBLE,
    "bytes": lambda: DOUBLE.encode(),
    "a module": lambda: pyshardy.load(DOUBLE),
    "a module of jaxlib": lambda: pyshardy.load(DOUBLE).mlir,
    "a propagation": lambda: pyshardy.propagate(DOUBLE),
    "a partition": lambda: pyshardy.partition(DOUBLE),
    "a lowered function": lambda: jax.jit(double).lower(X),
}
OF_FUNCTIONS = ("a lowered function",)
"""What gives the result of a function instead of a tuple of outputs."""


@pytest.mark.parametrize("source", SOURCES)
def test_what_can_be_loaded_can_be_propagated_partitioned_and_run(source: str) -> None:
    given = SOURCES[source]
    assert isinstance(pyshardy.propagate(given()), pyshardy.Propagation)
    assert isinstance(pyshardy.partition(given()), pyshardy.Partition)
    found = pyshardy.run(given(), X)
    np.testing.assert_array_equal(found if source in OF_FUNCTIONS else found[0], 2 * X)


@pytest.mark.parametrize("function", [double, jax.jit(double)])
def test_a_function_runs_on_its_arguments(function: Any) -> None:
    found = pyshardy.run(function, X)
    np.testing.assert_array_equal(found, 2 * X)


def test_arguments_of_a_function_may_be_trees_and_unused() -> None:
    found = pyshardy.run(lambda a, b: {"sum": a["x"] + b[1]}, {"x": X, "unused": np.ones(3)}, [X, 2 * X])
    assert list(found) == ["sum"]
    np.testing.assert_array_equal(found["sum"], 3 * X)


def test_a_path_is_propagated_as_text_or_as_a_path() -> None:
    texts = {pyshardy.propagate(source).module.text() for source in (MLP, str(MLP), MLP.read_text())}
    assert len(texts) == 1


def test_devices_may_be_a_mesh_of_jax() -> None:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[::-1]), ("x",))
    (found,) = pyshardy.run(DOUBLE, X, devices=mesh)
    assert [shard.device for shard in found.addressable_shards if float(shard.data[0]) == 0] == [jax.devices()[7]]


def test_keywords_count_more_than_options() -> None:
    options = pyshardy.PropagateOptions(strategy="basic", conservative=True)
    found = pyshardy.propagate(DOUBLE, options, strategy="basic-then-aggressive").options
    assert found == pyshardy.PropagateOptions(strategy="basic-then-aggressive", conservative=True)
    partition = pyshardy.partition(DOUBLE, pyshardy.PartitionOptions(halo_exchange=False), strategy="basic", view=None)
    assert partition.options == pyshardy.PartitionOptions(halo_exchange=False)
    assert partition.propagate_options.strategy is pyshardy.StrategyOption.BASIC


def test_load_text_never_reads_a_file_and_load_file_never_reads_text() -> None:
    with pytest.raises(pyshardy.InvalidModuleError, match="reading a module"):
        pyshardy.load_text(str(MLP))
    with pytest.raises(UsageError, match="got no such file"):
        pyshardy.load_file("{ }\n")
    assert pyshardy.load_file(MLP).text() == pyshardy.load_text(MLP.read_text()).text()
    assert pyshardy.load_text(MLP.read_bytes(), name="mine").name == "mine"


TILED = """HloModule m, num_partitions=8
ENTRY e {
  p = f32[8,4]{1,0} parameter(0), sharding={devices=[4,2]<=[8]}
  ROOT t = f32[8,4]{1,0} tanh(p)
}"""
MESHES: dict[str, Callable[[], Any]] = {
    "names with sizes": lambda: {"a": 4, "b": 2},
    "ours": lambda: pyshardy.Mesh({"a": 4, "b": 2}),
    "of JAX": jax_mesh,
    "abstract": lambda: jax_mesh().abstract_mesh,
}


@pytest.mark.parametrize("mesh", MESHES)
def test_every_way_to_load_takes_every_kind_of_mesh(mesh: str, tmp_path: Path) -> None:
    path = tmp_path / "tiled.hlo"
    path.write_text(TILED)
    given = MESHES[mesh]()
    found = (
        pyshardy.load(TILED, mesh=given),
        pyshardy.load_text(TILED, mesh=given),
        pyshardy.load_file(path, mesh=given),
    )
    for module in found:
        assert 'sdy.mesh @mesh = <["a"=4, "b"=2]>' in module.text()


def test_a_diagnostic_takes_its_severity_by_name() -> None:
    found = pyshardy.Diagnostic("warning", "beware")  # type: ignore[arg-type]
    assert found.severity is pyshardy.Severity.WARNING
    assert str(found) == "unknown: warning: beware"
    with pytest.raises(UsageError, match="got the severity 'warn', needed one of .*\n  try: warning"):
        pyshardy.Diagnostic("warn", "beware")  # type: ignore[arg-type]


def test_a_wrong_value_on_the_way_does_not_become_one_that_exists() -> None:
    before = pyshardy.Mesh({"x": 2})
    with pytest.raises(InvalidShardingError):
        pyshardy.TensorSharding(before, ["y"])
    assert pyshardy.TensorSharding(before, ["x"]).dims == (pyshardy.DimSharding(["x"]),)


LOADS_BEFORE_JAX = f"""
import pyshardy
pyshardy.load({DOUBLE!r})
import jax
jax.devices()
"""


@pytest.mark.slow
@pytest.mark.parametrize("level, is_quiet", [(None, True), ("0", False)])
def test_xla_prints_no_line_per_device_unless_the_user_asks_for_it(level: str | None, is_quiet: bool) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}
    environment |= {"JAX_PLATFORMS": "cpu"} | ({} if level is None else {"TF_CPP_MIN_LOG_LEVEL": level})
    command = [sys.executable, "-c", LOADS_BEFORE_JAX]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (result.stderr == "") is is_quiet
