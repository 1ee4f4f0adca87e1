"""`pyshardy run`: propagates, runs on virtual devices, and compares with one device."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyshardy.api.partition import partition
from pyshardy.api.propagate import propagate
from pyshardy.cli.arguments import MOST_EXAMPLE_DEVICES
from pyshardy.cli.example import load_example, provide_devices
from pyshardy.cli.files import load_source, naming
from pyshardy.cli.progress import stage
from pyshardy.cli.verdict import comparison_to_json
from pyshardy.core.mesh import device_count
from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.report.printing import Page, TableOptions
from pyshardy.report.summary import Summary
from pyshardy.report.tables import run_tables
from pyshardy.results.partition import Partition
from pyshardy.results.propagation import Propagation
from pyshardy.runtime.engine import Engine

_Found = TypeVar("_Found")
_RESULTS = 6
"""The versions of the outputs that exist at a time: of all devices, of one device, and of perturbed rounding."""


@dataclass(slots=True)
class Ran:
    """A program that has run.

    Attributes:
        propagation: The program with its shardings.
        partition: The program per device; None if XLA partitioned it.
        differences: The distance of every output from that of one device; None if unknown.
        stages: Name and seconds of every stage.
        warnings: What the user should know.
    """

    propagation: Propagation
    partition: Partition | None = None
    differences: list[Any] | None = None
    stages: list[tuple[str, float]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def summary(self) -> Summary:
        """The shardings and their origins, with all stages and warnings."""
        return replace(self.propagation.summary_with_origins, stages=tuple(self.stages), warnings=tuple(self.warnings))


def run_example(arguments: argparse.Namespace, rest: Sequence[str], options: Any, partition_options: Any) -> Ran:
    """Lower, propagate, partition and run the example training step; `rest` holds its sizes as flags."""
    example = load_example(rest, arguments.devices)
    import jax

    from pyshardy.examples import transformer

    def inputs(_: Sequence[InterfaceTensor]) -> list[Any]:
        return jax.tree.leaves(transformer.concrete_args(example.config, arguments.seed))

    found = _Runner(example.module, inputs, arguments).run(options, partition_options)
    found.stages.insert(0, ("lower", example.seconds))
    return found


def run_file(arguments: argparse.Namespace, rest: Sequence[str], options: Any, partition_options: Any) -> Ran:
    """Propagate, partition and run the module in a file, on random inputs or those of an `.npz` file."""
    with stage(f"reading {arguments.source}"):
        module = load_source(arguments)
    count = arguments.devices or device_count(module_meshes(module.root))
    provide_devices(min(count, MOST_EXAMPLE_DEVICES) if arguments.engine == Engine.INTERPRETER.value else count)
    from pyshardy.runtime.input_uses import input_uses
    from pyshardy.runtime.inputs import inputs_from_file, random_inputs

    def inputs(tensors: Sequence[InterfaceTensor]) -> list[Any]:
        if arguments.inputs:
            return inputs_from_file(arguments.inputs, tensors)
        return random_inputs(tensors, arguments.seed, input_uses(module))

    with naming(arguments.source):
        return _Runner(module, inputs, arguments).run(options, partition_options)


@dataclass(slots=True)
class _Runner:
    """Runs a module by a command line."""

    module: Module
    make_inputs: Callable[[Sequence[InterfaceTensor]], list[Any]]
    arguments: argparse.Namespace

    def run(self, options: Any, partition_options: Any) -> Ran:
        with stage("propagating"):
            result = propagate(self.module, options)
        found = Ran(result, stages=list(result.stages), warnings=list(result.warnings))
        if self.arguments.engine != Engine.XLA.value:
            with stage("partitioning"):
                found.partition = _timed(found, "partition", lambda: partition(result, partition_options))
            found.warnings += found.partition.diagnostic_texts()[len(result.sharded.diagnostics) :]
        if not self.arguments.force:
            self._check_memory(found)
        inputs = self.make_inputs(result.inputs)
        outputs = self._outputs(found, inputs)
        if self.arguments.check:
            found.differences = self._differences(found, inputs, outputs)
        return found

    def _check_memory(self, found: Ran) -> None:
        """Refuse a program that does not fit into memory, on all devices and on one."""
        from pyshardy.runtime.memory import check_memory, peak_bytes_of_program, tensors_bytes

        program = found.partition or found.propagation
        needed, what = program.bytes_on_all_devices, f"running a program on {program.device_count} devices"
        if self.arguments.check:
            outputs = tensors_bytes(program.outputs)
            copies = 1 if self.arguments.tolerance is not None else _RESULTS
            alone = peak_bytes_of_program(self.module.root) + outputs * copies
            if alone > needed:
                needed, what = alone, "comparing a program with one device (--no-check does not)"
        check_memory(what, tensors_bytes(program.inputs) + needed)

    def _outputs(self, found: Ran, inputs: list[Any]) -> Sequence[Any]:
        program = found.partition or found.propagation
        what = f"on {program.device_count} devices"
        with stage(f"compiling and running {what}"):
            return _timed(found, f"run {what}", lambda: run(program, *inputs, engine=self.arguments.engine))

    def _differences(self, found: Ran, inputs: list[Any], outputs: Sequence[Any]) -> list[Any] | None:
        from pyshardy.runtime.compare import compare_outputs
        from pyshardy.runtime.execute import run_on_one_device

        with stage("compiling and running on one device"):
            try:
                expected = _timed(found, "run on one device", lambda: run_on_one_device(self.module, inputs))
            except ShardyError as error:
                found.warnings.append(f"not compared with one device: {error.got or error}")
                return None
        names = [port.name for port in found.propagation.outputs]
        return compare_outputs(names, outputs, expected, self._noises(found, inputs, expected))

    def _noises(self, found: Ran, inputs: list[Any], expected: Sequence[Any]) -> list[Any] | None:
        """The effect of rounding on the outputs; None if the user gives a tolerance, or if it is unknown."""
        if self.arguments.tolerance is not None:
            return None
        from pyshardy.runtime.rounding import noises

        with stage("measuring the rounding error"):
            return _timed(found, "measure rounding", lambda: noises(self.module, inputs, expected))


def run(program: Partition | Propagation, *arrays: Any, engine: str) -> tuple[Any, ...]:
    """The outputs of a program, one by one. Its memory has been checked before."""
    return program.run_flat(arrays, engine=engine, force=True)


def _timed(found: Ran, name: str, action: Callable[[], _Found]) -> _Found:
    start = time.perf_counter()
    value = action()
    found.stages.append((name, time.perf_counter() - start))
    return value


def tables(found: Ran, more: str, options: TableOptions) -> Page:
    """The verdict, for a `rich` console.

    Args:
        found: The program that has run.
        more: The command that shows all shardings.
        options: The display options.
    """
    traffic = None if found.partition is None else found.partition.traffic
    return run_tables(found.summary, traffic, more, options)


def to_json(found: Ran, tolerance: float | None, times: bool = False) -> dict[str, Any]:
    """The shardings, the collectives and the comparison as JSON-ready data."""
    data = found.summary.to_json(times)
    data["traffic"] = None if found.partition is None else found.partition.traffic.to_json()
    return data | {"comparison": comparison_to_json(found.differences, tolerance)}
