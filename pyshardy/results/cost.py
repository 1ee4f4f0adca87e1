"""Estimates time and memory per device of a program, on a chip that need not be present."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.core.mesh import Mesh
from pyshardy.core.options import options_of
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.estimate import Estimate, estimate
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.launches import Launches, launches_of
from pyshardy.costing.places import By, PlaceCost, costs_by
from pyshardy.costing.timeline import timeline
from pyshardy.costing.topology import make_topology
from pyshardy.errors import UsageError
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.module import Module
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.report.cost import cost_tables
from pyshardy.report.printing import Page, html, printed
from pyshardy.report.trace import chrome_trace
from pyshardy.results.partition import Partition
from pyshardy.results.program_result import ProgramResult


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a partitioned program; see `Estimate` for its figures.

    Attributes:
        estimate: The figures.
        partition: The per-device program.
        warnings: Warnings and notes about the program, with places.
        speaker: Whose program was estimated, in words: a compiler's, or that of XLA for CPUs in its stead.
        launches: The kernels with their prices, which `by` adds up.
    """

    estimate: Estimate
    partition: Partition
    warnings: tuple[str, ...] = ()
    speaker: str = ""
    launches: Launches | None = field(default=None, repr=False, compare=False)

    def by(self, what: By | str) -> tuple[PlaceCost, ...]:
        """The time of kernels and collectives by scope or by line of the user, the longest first.

        Args:
            what: "scope" or "line".

        Raises:
            UsageError: It is neither.

        >>> text = '''func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<512x512xf32> loc("jit(f)/mlp/tanh"("f.py":3:4))
        ...   return %0 : tensor<512x512xf32>
        ... }'''
        >>> found = cost(text, "h100")
        >>> found.by("scope")[0].scope, found.by("line")[0].source, found.by("line")[0].kernel_seconds
        ('mlp', ('f.py', 3, 0), 7e-06)
        """
        assert self.launches is not None
        try:
            chosen = By(what)
        except ValueError as error:
            needed = " or ".join(repr(one.value) for one in By)
            raise UsageError("summing an estimate", got=repr(what), needed=needed) from error
        return costs_by(self.launches, chosen)

    def trace(self) -> dict[str, Any]:
        """One run as a trace in Chrome's format, as JSON-ready data: kernels, collectives and memory over time.

        Write it to a file and open that in https://ui.perfetto.dev or chrome://tracing. Of a loop, the first round is
        shown. The time that devices wait for the slowest one is not.

        >>> text = '''func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<512x512xf32> loc("jit(f)/mlp/tanh"("f.py":3:4))
        ...   return %0 : tensor<512x512xf32>
        ... }'''
        >>> for event in cost(text, "h100").trace()["traceEvents"]:
        ...     if event["ph"] == "X":
        ...         print(event["name"], event["dur"], event["args"]["line"])
        mlp/tanh 7.0 f.py:3
        """
        assert self.launches is not None
        networks = (*(network.name for network in self.launches.topology.hardware.networks), "host")
        return chrome_trace(timeline(self.launches), self.estimate, networks)

    @cached_property
    def step_seconds(self) -> float:
        """The estimated time of one run."""
        return self.estimate.step_seconds

    @property
    def peak_bytes(self) -> int:
        """The estimated peak memory of a device."""
        return self.estimate.memory.bytes

    @property
    def fits(self) -> bool:
        """Whether the estimated peak is within the memory of a device."""
        return self.estimate.fits

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-ready data."""
        return self.estimate.to_json() | ({"speaker": self.speaker} if self.speaker else {})

    def tables(self) -> Page:
        """The figures as tables, in the width in which they are printed."""
        return cost_tables(self.estimate, self.speaker)

    def __str__(self) -> str:
        return printed(self.tables())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html(self.tables())


def cost(
    program: Any,
    hardware: Hardware | str | Path | None = None,
    *,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel | str = CollectiveModel.FORMULA,
    options: PartitionOptions | None = None,
) -> Cost:
    """Estimate the cost of one run of a program per device. Nothing is run, and the hardware is not needed.

    Args:
        program: A result of `load`, `propagate` or `partition`, or anything that `load` takes.
        hardware: The name of a chip, such as "h100" or "v5p", a TOML file, or a `Hardware`; by default the chip of the
            compiler that was asked, or else v5p.
        networks: The networks of mesh axes, such as `{"data": "dcn"}`; other axes use networks from the inside out.
        shape: The dimensions of the torus, such as (16, 16), if the chip has one.
        collectives: The model of collectives: "formula", "measured" or "xla".
        options: The options of partitioning, for a program that is not partitioned yet.

    Raises:
        UsageError: A chip, a network or a model is unknown, or the mesh does not fit.
        ShardyError: The program cannot be partitioned.

    >>> from pyshardy import load
    >>> program = load('''
    ... sdy.mesh @mesh = <["x"=8]>
    ... func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    ...                 %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    ...     -> tensor<8192x4096xbf16> {
    ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
    ...   return %0 : tensor<8192x4096xbf16>
    ... }''')
    >>> found = cost(program, "h100").estimate
    >>> f"{found.flops_per_device:.3g}", [(row.kind, row.count) for row in found.collectives], found.fits
    ('3.44e+10', [('all_reduce', 1)], True)
    """
    model = collective_model(collectives)
    chip = None if hardware is None else find_hardware(hardware)
    options = options_of(PartitionOptions, options, {}, "estimating")
    if not isinstance(program, ProgramResult):  # the price of a compiler's own program is for those who ask for it
        program = propagate(program, compiler="none")
    part = program if isinstance(program, Partition) else partition(program, options)
    with pause_gc():
        causes = None if part.answer is None else CompilerCauses(part.module.root)
        described = cost_program(part.module.root, part.meshes, part.before.name, causes)
        chip = chip or find_hardware(chip_of(part))
        topology = make_topology(chip, described.mesh_axes, networks, shape)
        launches = launches_of(described, topology, model)
        return Cost(estimate(launches), part, part.warnings, part.speaker, launches)


def chip_of(result: Partition) -> str:
    """The chip of the compiler that was asked; else the usual one."""
    return (result.answer.target.chip if result.answer is not None else "") or "v5p"


def with_mesh(module: Module, sizes: Mapping[str, int]) -> Module:
    """A module with other sizes of its mesh axes, for a larger or smaller cluster.

    Args:
        module: The result of `load`; it does not change.
        sizes: The size of every axis.

    Raises:
        UsageError: No mesh of the module has these axes.

    >>> from pyshardy import load
    >>> program = load('sdy.mesh @m = <["x"=8]> func.func @main(%a: tensor<8xi1>) { return }')
    >>> print(with_mesh(program, {"x": 64}).text().splitlines()[1].strip())
    sdy.mesh @m = <["x"=64]>
    """
    root = module.copy_root()
    changed = 0
    known = []
    for op in root.region.block:
        if op.name != "sdy.mesh":
            continue
        mesh: Mesh = op.attrs["mesh"]
        known.append(",".join(f"{name}={size}" for name, size in mesh.axes))
        if {name for name, _ in mesh.axes} == set(sizes):
            op.set_attr("mesh", Mesh([(name, sizes[name]) for name, _ in mesh.axes]))
            op.remove_attr("stablehlo.mesh")
            changed += 1
    if not changed:
        raise UsageError(
            "giving the mesh other sizes",
            got=",".join(f"{name}={size}" for name, size in sizes.items()),
            needed=f"a size for every axis, as in {' or '.join(known)}" if known else "a program with a mesh",
        )
    return module.with_root(root)


def has_mesh(module: Module, axes: Mapping[str, int]) -> bool:
    """Whether a mesh of a module has axes with these names, whatever their sizes.

    >>> from pyshardy import load
    >>> has_mesh(load('sdy.mesh @m = <["x"=8]> func.func @main(%a: tensor<8xi1>) { return }'), {"x": 4})
    True
    """
    meshes = [op.attrs["mesh"] for op in module.root.region.block if op.name == "sdy.mesh"]
    return any({name for name, _ in mesh.axes} == set(axes) for mesh in meshes)


def collective_model(name: CollectiveModel | str) -> CollectiveModel:
    """The model of collectives with this name.

    Raises:
        UsageError: No model has this name.

    >>> collective_model("xla")
    <CollectiveModel.XLA: 'xla'>
    """
    try:
        return CollectiveModel(name)
    except ValueError:
        known = ", ".join(model.value for model in CollectiveModel)
        raise UsageError(
            "estimating cost", got=f"the model {name!r} of collectives", needed=f"one of {known}"
        ) from None
