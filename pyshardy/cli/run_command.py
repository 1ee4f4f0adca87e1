"""`pyshardy run`: propagate, run on virtual devices, and compare with one device."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyshardy import api
from pyshardy.cli.example import load_example, provide_devices
from pyshardy.cli.files import load_source, naming
from pyshardy.cli.progress import stage
from pyshardy.core.mesh import device_count
from pyshardy.errors import ShardyError
from pyshardy.frontend.interface import Port
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.partitioning import Engine, Partition, partition, run
from pyshardy.report.tables import kinds_table, summary_tables


@dataclass
class Ran:
    """A program that has run.

    Attributes:
        propagation: The program with its shardings.
        partition: The program per device; None if XLA partitioned it.
        differences: How far every output is from that of one device; None if that is not known.
    """

    propagation: api.Propagation
    partition: Partition | None
    differences: list[Any] | None


def run_example(arguments: argparse.Namespace, rest: Sequence[str], options: Any, partition_options: Any) -> Ran:
    """Lower, propagate, partition and run the example training step; `rest` holds its sizes as flags."""
    example = load_example(rest, arguments.devices)
    import jax

    from pyshardy.examples import transformer

    def inputs(_: list[Port]) -> list[Any]:
        return jax.tree.leaves(transformer.concrete_args(example.config, arguments.seed))

    found = _Runner(example.module, inputs, arguments).run(options, partition_options)
    found.propagation.stages.insert(0, ("lower", example.seconds))
    return found


def run_file(arguments: argparse.Namespace, rest: Sequence[str], options: Any, partition_options: Any) -> Ran:
    """Propagate, partition and run the module in a file, on random inputs or those of an `.npz` file."""
    with stage(f"reading {arguments.source}"):
        module = load_source(arguments)
    provide_devices(arguments.devices or device_count(module_meshes(module.root)))
    from pyshardy.runtime.inputs import inputs_from_file, random_inputs

    def inputs(ports: list[Port]) -> list[Any]:
        return inputs_from_file(arguments.inputs, ports) if arguments.inputs else random_inputs(ports, arguments.seed)

    with naming(arguments.source):
        return _Runner(module, inputs, arguments).run(options, partition_options)


@dataclass
class _Runner:
    """Runs a module as a command line asks for it."""

    module: Module
    make_inputs: Callable[[list[Port]], list[Any]]
    arguments: argparse.Namespace

    def run(self, options: Any, partition_options: Any) -> Ran:
        with stage("propagating"):
            result = api.propagate(self.module, options)
        partitioned = None
        if self.arguments.engine != Engine.XLA.value:
            with stage("partitioning"):
                start = time.perf_counter()
                partitioned = partition(result, partition_options)
            result.stages.append(("partition", time.perf_counter() - start))
            result.diagnostics.messages += partitioned.new_messages(result.diagnostics)
        inputs = self.make_inputs(result.inputs)
        found = self._outputs(result, partitioned, inputs)
        return Ran(result, partitioned, self._differences(result, inputs, found) if self.arguments.check else None)

    def _outputs(self, result: api.Propagation, partitioned: Partition | None, inputs: list[Any]) -> Sequence[Any]:
        count = device_count(result.meshes)
        with stage(f"compiling and running on {count} devices"):
            if partitioned is None:
                return _timed(result, f"run on {count} devices", lambda: result.run(*inputs))
            engine = self.arguments.engine
            return _timed(result, f"run on {count} devices", lambda: run(partitioned, *inputs, engine=engine))

    def _differences(self, result: api.Propagation, inputs: list[Any], found: Sequence[Any]) -> list[Any] | None:
        from pyshardy.runtime.compare import compare_outputs
        from pyshardy.runtime.execute import run_on_one_device

        with stage("compiling and running on one device"):
            try:
                expected = _timed(result, "run on one device", lambda: run_on_one_device(self.module, inputs))
            except ShardyError as error:
                result.diagnostics.messages.append(_cannot_compare(error))
                return None
        return compare_outputs([port.name for port in result.outputs], found, expected)


def _timed(result: api.Propagation, name: str, action: Callable[[], Sequence[Any]]) -> Sequence[Any]:
    start = time.perf_counter()
    value = action()
    result.stages.append((name, time.perf_counter() - start))
    return value


def _cannot_compare(error: ShardyError) -> Any:
    from pyshardy.ir.diagnostics import Diagnostic, Severity

    return Diagnostic(Severity.WARNING, f"not compared with one device: {error.got or error}")


def is_equal(differences: list[Any] | None, tolerance: float) -> bool:
    """Whether all outputs agree within the tolerance; True where nothing could be compared."""
    return all(difference.max_relative_error <= tolerance for difference in differences or ())


def tables(found: Ran) -> Any:
    """The shardings, and the totals of the collectives, for a `rich` console."""
    from rich.console import Group

    summary = summary_tables(found.propagation.summary)
    if found.partition is None or not found.partition.traffic.collectives:
        return summary
    return Group(summary, "", kinds_table(found.partition.traffic))


def to_json(found: Ran, tolerance: float) -> dict[str, Any]:
    """The shardings, the collectives and the comparison as JSON-ready data."""
    data = found.propagation.summary.to_json()
    data["traffic"] = None if found.partition is None else found.partition.traffic.to_json()
    return data | {"comparison": _comparison(found.differences, tolerance)}


def _comparison(differences: list[Any] | None, tolerance: float) -> dict[str, Any] | None:
    if differences is None:
        return None
    rows = [
        {
            "name": difference.name,
            "max_absolute_error": difference.max_absolute_error,
            "max_relative_error": difference.max_relative_error,
        }
        for difference in differences
    ]
    return {"equal": is_equal(differences, tolerance), "tolerance": tolerance, "outputs": rows}


def print_differences(differences: list[Any] | None, tolerance: float) -> None:
    """Print the largest error of all outputs, and those that are out of tolerance."""
    if not differences:
        return
    wrong = [difference for difference in differences if difference.max_relative_error > tolerance]
    for difference in wrong:
        print(f"output {difference.name}: error {difference.max_absolute_error:.3g}")
    worst = max(differences, key=lambda difference: difference.max_absolute_error)
    count = f"{len(differences)} output{'s' * (len(differences) > 1)}"
    verdict = f"{len(wrong)} differ" if wrong else "all agree"
    print(
        f"compared {count} with one device: {verdict}; "
        f"largest error {worst.max_absolute_error:.3g} in {worst.name} "
        f"(relative {max(d.max_relative_error for d in differences):.3g}, tolerance {tolerance:g})"
    )
