"""The estimated cost of a partitioned program."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.compilers import assumed
from pyshardy.costing.estimate import Estimate, estimate
from pyshardy.costing.hardware import Hardware
from pyshardy.costing.known_errors import is_conflicting
from pyshardy.costing.launches import Launches, launches_of
from pyshardy.costing.mesh_order import MeshOrder, faster_order
from pyshardy.costing.places import By, PlaceCost, costs_by
from pyshardy.costing.timeline import timeline
from pyshardy.costing.topology import make_topology
from pyshardy.costing.windowed_products import with_windowed_products
from pyshardy.errors import UsageError
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.xla.compare_places import compared_scatters
from pyshardy.propagation.options import View
from pyshardy.report.cost import cost_tables, format_duration
from pyshardy.report.printing import Page, Printable
from pyshardy.report.trace import chrome_trace
from pyshardy.results.partition import Partition, finish_partition
from pyshardy.results.sharded_program import shard
from pyshardy.results.tokens import Tokens, tokens_of

if TYPE_CHECKING:
    from pyshardy.report.page.render import PageFormat


_OWN = "as partitioned by pyshardy"
_ON_TPUS = (
    "priced as XLA for TPUs propagates it, where a scatter with one update per row, as in the gradient of a "
    'cross-entropy, is a comparison: propagate(..., view="tpu") shows the shardings'
)


@dataclass(frozen=True)
class Cost(Printable):
    """The estimated cost of a partitioned program; see `Estimate` for its figures.

    Attributes:
        estimate: The figures.
        partition: The per-device program.
        warnings: Warnings and notes about the program, with places.
        speaker: Whose program was estimated, in words: a compiler's, or pyshardy's own.
        launches: The kernels with their prices, which `by` adds up.
    """

    estimate: Estimate
    partition: Partition
    warnings: tuple[str, ...] = ()
    speaker: str = _OWN
    launches: Launches | None = field(default=None, repr=False, compare=False)

    def by(self, what: By | str) -> tuple[PlaceCost, ...]:
        """Time, FLOPs, bytes, and memory at the peak, by scope or by line of the user, the longest time first.

        Args:
            what: "scope" or "line".

        Raises:
            UsageError: It is neither.

        >>> text = '''func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<512x512xf32> loc("jit(f)/mlp/tanh"("f.py":3:4))
        ...   return %0 : tensor<512x512xf32>
        ... }'''
        >>> from pyshardy import cost
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
        return costs_by(self.launches, chosen, self.estimate.memory.live)

    def trace(self) -> dict[str, Any]:
        """One run as a trace in Chrome's format, as JSON-ready data: kernels, collectives and memory over time.

        Write it to a file and open that in https://ui.perfetto.dev or chrome://tracing. Of a loop, the first round is
        shown. The time that devices wait for the slowest one is not.

        >>> text = '''func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<512x512xf32> loc("jit(f)/mlp/tanh"("f.py":3:4))
        ...   return %0 : tensor<512x512xf32>
        ... }'''
        >>> from pyshardy import cost
        >>> for event in cost(text, "h100").trace()["traceEvents"]:
        ...     if event["ph"] == "X":
        ...         print(event["name"], event["dur"], event["args"]["line"])
        mlp/tanh 7.0 f.py:3
        """
        assert self.launches is not None
        networks = (*(network.name for network in self.launches.topology.hardware.networks), "host")
        return chrome_trace(timeline(self.launches), self.estimate, networks)

    def report(self, path: str | Path, *, format: PageFormat | str = "html", hints: bool = True) -> None:
        """Write a report of the program with one run: its timeline, its memory, and what limits each kernel.

        Args:
            path: The file.
            format: A `PageFormat` or its name: "html", "json", ...
            hints: Whether to look for annotations that make the program send less, which partitions it a few times.

        Raises:
            UsageError: The format is unknown, or the file cannot be written.

        >>> import pathlib, tempfile
        >>> from pyshardy import cost
        >>> text = '''func.func @main(%a: tensor<512x512xf32>) -> tensor<512x512xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<512x512xf32>
        ...   return %0 : tensor<512x512xf32>
        ... }'''
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "report.html")
        ...     cost(text, "h100").report(path)
        ...     "A run, estimated" in path.read_text()
        True
        """
        assert self.launches is not None
        from pyshardy.core.files import write_whole
        from pyshardy.results.pages import report_bytes

        write_whole(path, report_bytes([self.partition], format, hints=hints, runs=[(self.launches, self.estimate)]))

    @cached_property
    def step_seconds(self) -> float:
        """The estimated time of one run."""
        return self.estimate.step_seconds

    @property
    def peak_bytes(self) -> int:
        """The estimated peak memory of a device."""
        return self.estimate.memory.bytes

    @cached_property
    def tokens(self) -> Tokens | None:
        """The tokens of a run, and the input that has them; None if it has none, or several inputs differ."""
        with self.partition.before.context:
            return tokens_of(self.partition.before.root)

    @property
    def tokens_per_second(self) -> float | None:
        """The tokens that all devices together take in a second; None if a run has none, or takes no time."""
        tokens, seconds = self.tokens, self.step_seconds
        return tokens.count / seconds if tokens is not None and seconds else None

    @property
    def fits(self) -> bool:
        """Whether the estimated peak is within the memory of a device."""
        return self.estimate.fits

    @cached_property
    def faster_order(self) -> MeshOrder | None:
        """Another order of the axes of the mesh with which a step is faster, as less is sent from node to node.

        The last axes get the innermost network. None if no other order is faster by 5 %, or if `networks` placed the
        axes otherwise than from the inside out.

        >>> text = '''sdy.mesh @mesh = <["model"=8, "data"=4]>
        ... func.func @main(%a: tensor<8192x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
        ...                 %b: tensor<4096x4096xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
        ...     -> tensor<8192x4096xbf16> {
        ...   %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        ...     : (tensor<8192x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<8192x4096xbf16>
        ...   return %0 : tensor<8192x4096xbf16>
        ... }'''
        >>> import pyshardy
        >>> pyshardy.cost(text, "h100").faster_order.axes
        (('data', 4), ('model', 8))
        """
        return None if self.launches is None else faster_order(self.launches)

    @property
    def told(self) -> Estimate:
        """The estimate with a note on another order of the axes."""
        other = self.faster_order
        if other is None:
            return self.estimate
        names, sizes = (", ".join(map(json.dumps, part)) for part in zip(*other.axes))
        note = (
            f"the last axes of a mesh get the fastest network, {other.network}: "
            f"a step takes {format_duration(other.seconds)} with jax.make_mesh(({sizes}), ({names}))"
        )
        return replace(self.estimate, notes=(*self.estimate.notes, note))

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON-ready data."""
        found = self.told.to_json() | {"speaker": self.speaker}
        if self.tokens is not None:
            name, shape = self.tokens.name, list(self.tokens.shape)
            found["tokens"] = {"input": name, "shape": shape, "per_second": self.tokens_per_second}
        return found

    def tables(self) -> Page:
        """The figures as tables, in the width in which they are printed."""
        tokens, rate = self.tokens, self.tokens_per_second
        return cost_tables(self.told, self.speaker, None if tokens is None or rate is None else (tokens.name, rate))

    def __repr__(self) -> str:
        return str(self)


def cost_of(
    part: Partition,
    hardware: Hardware | None = None,
    *,
    networks: Mapping[str, str] | None = None,
    shape: Sequence[int] | None = None,
    collectives: CollectiveModel = CollectiveModel.FORMULA,
) -> Cost:
    """The cost of a partitioned program; the arguments are those of `pyshardy.cost`.

    Raises:
        UsageError: A network is unknown, or the mesh does not fit.
    """
    with pause_gc():
        chip = hardware or find_hardware(chip_of_partition(part))
        given, part = part, _as_on_tpus(part, chip)
        causes = None if part.answer is None else CompilerCauses(part.module.root)
        described = cost_program(part.module.root, part.meshes, part.before.name, causes)
        if causes is None and chip.part_flops_per_byte is not None:
            described = with_windowed_products(described, chip.part_flops_per_byte)
        launches = launches_of(described, make_topology(chip, described.mesh_axes, networks, shape), collectives)
        if part is given:
            found = estimate(launches, is_compilers=part.answer is not None)
        else:
            conflicts = is_conflicting((one.kind, one.sent_bytes_per_device) for one in given.traffic.kinds)
            found = estimate(launches, conflicts=conflicts)
            found = replace(found, notes=(*found.notes, _ON_TPUS))
        return Cost(found, part, part.warnings, part.speaker or _OWN, launches)


def view_for(hardware: Hardware) -> View:
    """The form in which the compiler of a chip passes a program to Shardy, as far as it is known."""
    return View.TPU if assumed(hardware).compares_places else View.XLA


def _as_on_tpus(part: Partition, hardware: Hardware) -> Partition:
    """The program as XLA for TPUs propagates it, for a TPU for which that differs."""
    options = part.propagate_options
    if options.compiler or options.view is not View.XLA or view_for(hardware) is not View.TPU:
        return part
    with part.before.context:
        if next(compared_scatters(part.before.root), None) is None:
            return part
    sharded, root = shard(part.before, replace(options, view=View.TPU, dump_directory=""))
    return finish_partition(sharded, replace(part.options, dump_directory=""), root)


def chip_of_partition(result: Partition) -> str:
    """The chip of the compiler that was asked; else the usual one."""
    return (result.answer.target.chip if result.answer is not None else "") or "v5p"


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
