"""The shardings that XLA decided on, from its dump, and their differences from pyshardy's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pyshardy.core.boxes import device_boxes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent, is_unsharded
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import UsageError
from pyshardy.frontend.annotated import import_annotations
from pyshardy.frontend.from_dump import choose, split_source
from pyshardy.frontend.from_text import read_file
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.ir.shardings import ModuleMeshes, get_sharding, module_meshes

_SAME = {"sdy.constant": "stablehlo.constant"}


@dataclass(frozen=True, slots=True)
class Decided:
    """The shardings that XLA decided for one module.

    Attributes:
        where: The file, or the compiler, that it is from.
        module: The module after propagation in XLA.
        inputs: Its inputs with their shardings.
        outputs: Its outputs.
    """

    where: str
    module: Module
    inputs: list[InterfaceTensor]
    outputs: list[InterfaceTensor]


@dataclass(frozen=True, slots=True)
class ShardingDifference:
    """A value that is sharded differently here and in XLA.

    Attributes:
        where: The value: "input x", "output result", or an op by name and number.
        here: Its sharding here.
        in_xla: Its sharding in XLA.
    """

    where: str
    here: str
    in_xla: str

    def __str__(self) -> str:
        return f"{self.where}: {self.here} here, {self.in_xla} in XLA"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison with a dump.

    Attributes:
        differences: The values that are sharded differently.
        values: The number of compared inputs and outputs.
        ops: The number of compared results of ops; None if the ops differ.
    """

    differences: tuple[ShardingDifference, ...]
    values: int
    ops: int | None

    def to_json(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "values": self.values,
            "ops": self.ops,
            "differences": [
                {"where": found.where, "here": found.here, "in_xla": found.in_xla} for found in self.differences
            ],
        }

    def __str__(self) -> str:
        ops = "the ops are not the same" if self.ops is None else f"{self.ops} results of ops"
        head = f"compared {self.values} inputs and outputs; {ops}: {len(self.differences)} differ"
        return "\n".join([head, *(f"  {difference}" for difference in self.differences)])


def dump_shardings(source: str | Path, module: str | None = None, isolate: bool = False) -> Decided:
    """The shardings that XLA's Shardy decided on.

    Args:
        source: A directory that XLA dumped to, optionally followed by `::` and the name of a module.
        module: The name of the module.
        isolate: Whether to read it in a separate process, because its bytes may crash the reader.

    Raises:
        UsageError: There is no such module, or its dump lacks the steps of Shardy.
    """
    directory, name = split_source(source)
    dumped = choose(directory, module or name)
    path = dumped.decided
    if path is None:
        raise UsageError(
            f"reading what XLA decided for {dumped.name}",
            got=f"no {directory}/shardy/{dumped.name}/02.after_propagation.mlir",
            needed="a dump with the steps of Shardy",
            hint="XLA_FLAGS=--xla_dump_hlo_pass_re=shardy-xla beside --xla_dump_to",
        )
    return decided_by(read_file(path, isolate=isolate), str(path))


def decided_by(module: Module, where: str) -> Decided:
    """The shardings in a module that XLA's Shardy has propagated; `where` names its source in messages."""
    found = import_annotations(module)
    return Decided(where, found, input_tensors(found.root), output_tensors(found.root))


def compare(propagated: Module, decided: Decided) -> Comparison:
    """List the values that a propagated module shards differently than XLA.

    Inputs and outputs are compared by position; results of ops too, if both modules have the same ops in the same
    order. Shardings with the same blocks on the same devices are equal, whatever the names of their axes.

    Raises:
        UsageError: The modules have different inputs or outputs.
    """
    root, other = propagated.root, decided.module.root
    meshes = module_meshes(root), module_meshes(other)
    inputs, outputs = input_tensors(root), output_tensors(root)
    _check_types("input", inputs, decided.inputs, decided.where)
    _check_types("output", outputs, decided.outputs, decided.where)
    names = [*(f"input {tensor.name}" for tensor in inputs), *(f"output {tensor.name}" for tensor in outputs)]
    ours, theirs = [*inputs, *outputs], [*decided.inputs, *decided.outputs]
    found: list[ShardingDifference] = []
    for name, mine, its in zip(names, ours, theirs):
        found += _difference(name, mine.sharding, its.sharding, mine.shape, meshes)
    results, its_results = _results(root), _results(other)
    if [result.name for result in results] != [result.name for result in its_results]:
        return Comparison(tuple(found), len(ours), None)
    for number, (result, its_result) in enumerate(zip(results, its_results)):
        where = f"result {number} ({result.name})"
        found += _difference(where, result.sharding, its_result.sharding, result.shape, meshes)
    return Comparison(tuple(found), len(ours), len(results))


def _check_types(side: str, ours: list[InterfaceTensor], theirs: list[InterfaceTensor], where: str) -> None:
    shapes = [[(tensor.shape, tensor.element) for tensor in tensors] for tensors in (ours, theirs)]
    if shapes[0] != shapes[1]:
        raise UsageError(
            f"comparing the {side}s with those in {where}",
            got=f"{len(ours)} {side}s here and {len(theirs)} there, not all of the same types",
            needed="the same program",
        )


class _Result(NamedTuple):
    """A tensor that an op computes."""

    name: str
    shape: tuple[int, ...]
    sharding: TensorSharding | None


def _results(root: Op) -> list[_Result]:
    """Every tensor that an op of the main function computes, in program order."""
    return [
        _Result(_SAME.get(op.name, op.name), result.type.shape, get_sharding(result))
        for op in ops_in(main_function(root))
        for result in op.results
        if result.type.shape is not None
    ]


def _difference(
    where: str,
    here: TensorSharding | None,
    in_xla: TensorSharding | None,
    shape: tuple[int, ...],
    meshes: tuple[ModuleMeshes, ModuleMeshes],
) -> Iterator[ShardingDifference]:
    if not is_laid_out_alike(here, in_xla, shape, meshes):
        yield ShardingDifference(where, _text(here), _text(in_xla))


def is_laid_out_alike(
    here: TensorSharding | None,
    in_xla: TensorSharding | None,
    shape: tuple[int, ...],
    meshes: tuple[Mapping[str, Mesh], Mapping[str, Mesh]],
) -> bool:
    """Whether two shardings put the same blocks of a tensor on the same devices, whatever the names of their axes.

    >>> from pyshardy.core.notation import parse_sharding
    >>> one, other = parse_sharding('<@m, [{"x"}]>'), parse_sharding('<@m, [{"all"}]>')
    >>> meshes = {"m": Mesh([("x", 4)])}, {"m": Mesh([("all", 4)])}
    >>> is_laid_out_alike(one, other, (8,), meshes), is_laid_out_alike(one, None, (8,), meshes)
    (True, False)
    """
    if here is None or in_xla is None:
        return is_unsharded(here) and is_unsharded(in_xla)
    first, second = mesh_of(here, meshes[0]), mesh_of(in_xla, meshes[1])
    here, in_xla = here.with_mesh(first), in_xla.with_mesh(second)
    if is_equivalent(here, in_xla):
        return True
    if first is second or first.size != second.size or here.unreduced or in_xla.unreduced or -1 in shape:
        return False
    return device_boxes(here, first, shape) == device_boxes(in_xla, second, shape)


def _text(sharding: TensorSharding | None) -> str:
    return "replicated" if sharding is None or is_unsharded(sharding) else str(sharding)
