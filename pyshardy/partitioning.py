"""From a program on whole tensors to one per device, and running it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from pyshardy.api import Propagation, propagate, warning_text
from pyshardy.core.mesh import device_count
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.interface import Port, input_ports, output_ports
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import Meshes, get_sharding, module_meshes
from pyshardy.ir.traffic import collectives_of
from pyshardy.passes.base import Pass
from pyshardy.passes.partitioning.partition_options import PartitionOptions
from pyshardy.passes.partitioning.survey import distinct_shardings
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import for_module, partition_passes
from pyshardy.propagation.options import PropagateOptions, View
from pyshardy.report.summary import JSON_VERSION, stages_to_json
from pyshardy.report.tables import traffic_text
from pyshardy.report.traffic import KindTotal, Traffic


class Engine(Enum):
    """What runs a program: the per-device program on JAX's devices, XLA's own partitioner, or an interpreter."""

    LOCAL = "local"
    XLA = "xla"
    INTERPRETER = "interpreter"


@dataclass
class Partition:
    """A program per device, with local shapes and explicit collectives.

    Attributes:
        module: The per-device module.
        before: The module it came from.
        inputs: The inputs of the whole program, with their shardings.
        outputs: Its outputs.
        meshes: The meshes by name.
        options: How it was partitioned.
        propagate_options: How its shardings were found.
        diagnostics: What the user should know.
        stages: Name and seconds of every step taken.
    """

    module: Module
    before: Module
    inputs: list[Port]
    outputs: list[Port]
    meshes: Meshes
    options: PartitionOptions = field(default_factory=PartitionOptions)
    propagate_options: PropagateOptions = field(default_factory=PropagateOptions)
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    stages: list[tuple[str, float]] = field(default_factory=list)
    _executables: dict[Any, Any] = field(default_factory=dict, repr=False)
    _fits: bool = field(default=False, repr=False)

    @property
    def device_count(self) -> int:
        """Number of devices that the program is for."""
        return device_count(self.meshes)

    @cached_property
    def propagated(self) -> Propagation:
        """The whole program with its shardings, as XLA's own partitioner takes it."""
        return propagate(self.before, self.propagate_options)

    @cached_property
    def bytes_per_device(self) -> int:
        """An estimate of the most that a device holds at a time: inputs, outputs, and what is needed in between."""
        from pyshardy.runtime.memory import peak_bytes

        return peak_bytes(self.module.root)

    @cached_property
    def traffic(self) -> Traffic:
        """Every collective: its kind, axes and bytes, and the op and source line that made it necessary."""
        return Traffic(tuple(collectives_of(self.module.root, self.meshes, self.before.name)))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, with places."""
        return tuple(warning_text(message, self.before.name) for message in self.diagnostics.messages)

    def new_messages(self, known: Diagnostics) -> list[Diagnostic]:
        """The diagnostics that are not among those of propagation."""
        texts = {warning_text(message) for message in known.messages}
        return [message for message in self.diagnostics.messages if warning_text(message) not in texts]

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The collectives as JSON-ready data; with `times`, also how long every step took."""
        return {
            "version": JSON_VERSION,
            "device_count": self.device_count,
            "traffic": self.traffic.to_json(),
            "warnings": list(self.warnings),
            **({"stages": stages_to_json(self.stages)} if times else {}),
        }

    def __str__(self) -> str:
        return traffic_text(self.traffic)

    def __repr__(self) -> str:
        return str(self)


def partition(
    program: Module | Propagation,
    options: PartitionOptions = PartitionOptions(),
    propagate_options: PropagateOptions | None = None,
    *,
    view: View | str | None = None,
) -> Partition:
    """Make the program of one device: local shapes, explicit collectives.

    Args:
        program: What `load` or `propagate` returns; it is not changed.
        options: How to partition.
        propagate_options: How to propagate; by default as was propagated before, or the defaults of `propagate`.
        view: As for `propagate`.

    Raises:
        UsageError: There is no such view.
        PassError: A program that cannot be partitioned; names the op.
        ShardyError: Shardings on meshes with different numbers of devices.

    >>> from pyshardy import load
    >>> program = load('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }''')
    >>> found = partition(program)
    >>> [(row.kind, row.axes, row.sent_bytes_per_device) for row in found.traffic.collectives]
    [('all_reduce', ('"x"',), 16)]
    """
    before = program.before if isinstance(program, Propagation) else program
    if propagate_options is None:
        propagate_options = program.options if isinstance(program, Propagation) else PropagateOptions()
    propagate_options = propagate_options.with_view(view)
    stages: dict[str, float] = {}
    diagnostics = Diagnostics()
    start = time.perf_counter()
    root = before.copy_root()
    _put_meshes_in_use_first(root)
    _leave_reductions_to_passes(root)
    stages["read"] = time.perf_counter() - start
    border = _Border()

    def after_pass(pass_: Pass, current: Any, seconds: float) -> None:
        stages[pass_.name] = stages.get(pass_.name, 0.0) + seconds
        border.look(pass_, current)
        if pass_.name == "sdy-close-shardings" and getattr(before.origin, "partitioners", None):
            from pyshardy.runtime.user_partitioners import expand_user_partitioners

            expand_user_partitioners(current, before)

    run_on_root(before, root, partition_passes(for_module(propagate_options, root), options), diagnostics, after_pass)
    module = before.with_root(root)
    start = time.perf_counter()
    module.verify()
    stages["write"] = time.perf_counter() - start
    return Partition(
        module,
        before,
        border.inputs,
        border.outputs,
        border.meshes,
        options,
        propagate_options,
        diagnostics,
        list(stages.items()),
    )


class _Border:
    """The inputs, outputs and meshes of the whole program, seen once its shardings are final."""

    def __init__(self) -> None:
        self.inputs: list[Port] = []
        self.outputs: list[Port] = []
        self.meshes: Meshes = {}

    def look(self, pass_: Pass, root: Any) -> None:
        if pass_.name == "sdy-close-shardings":
            self.inputs, self.outputs, self.meshes = input_ports(root), output_ports(root), _meshes_in_use(root)


def _leave_reductions_to_passes(root: Op) -> None:
    """Make reshards of the collectives that add up parts of sums: passes complete such a sum before its first use.

    They do so before any op that is no reshard, also before such a collective, which would add up the whole sums.
    """
    for op in walk(root):
        if op.name in ("sdy.all_reduce", "sdy.reduce_scatter"):
            before = get_sharding(op.operands[0])
            if before is not None and before.unreduced:
                op.attrs = {"sharding": op.attrs["out_sharding"]}
                op.rename("sdy.reshard")


def _put_meshes_in_use_first(root: Op) -> None:
    """Let passes that take the first mesh with axes for all devices take one that shardings are on."""
    used = set(_names_in_use(root))
    for op in reversed([op for op in root.region.block if op.name == "sdy.mesh" and op.attrs["sym_name"] in used]):
        root.region.block.prepend(op.detach())


def _names_in_use(root: Op) -> Iterator[Any]:
    """The meshes that shardings are on, by name or as they are."""
    return (sharding.mesh for function in functions(root) for sharding in distinct_shardings(function))


def _meshes_in_use(root: Op) -> Meshes:
    """The meshes that shardings are on, of one number of devices; all meshes if nothing is on one with axes."""
    meshes = module_meshes(root)
    used = set(_names_in_use(root))
    found = {name: mesh for name, mesh in meshes.items() if name in used}
    counts = sorted({mesh.size for mesh in found.values() if mesh.axes})
    if len(counts) > 1:
        raise ShardyError(
            "partitioning a program",
            got=f"shardings on meshes of {' and of '.join(map(str, counts))} devices",
            needed="the same devices for all, because they run one program together",
        )
    return found if counts else meshes


def run(
    partition: Partition,
    *arrays: Any,
    devices: Sequence[Any] | None = None,
    engine: Engine | str = Engine.LOCAL,
    force: bool = False,
) -> tuple[Any, ...]:
    """The outputs of a partitioned program, global arrays with the shardings of the program's outputs.

    Args:
        partition: What `partition` returns.
        arrays: The inputs, one global array per input: NumPy's, or JAX's, placed or not. With several processes, every
            process gives the same arrays, or arrays that are placed. An input that the program donates is used up if it
            is placed already.
        devices: The devices, in the order that device ids count them; by default those that a JAX function was lowered
            for, or those that JAX has.
        engine: "local" runs the per-device program through XLA; "xla" lets XLA partition the propagated program itself,
            for comparison; "interpreter" runs the per-device program without devices, slowly, and gives NumPy arrays.
        force: Whether to run a program that seems to need more memory than this machine has for its virtual devices.

    Raises:
        UsageError: Inputs that do not fit, too few devices, an unknown engine, or too little memory.
        ShardyError: What runs it cannot compile it or fails on the way, such as when another process has died.
    """
    engine = _engine(engine)
    if engine is Engine.XLA:
        return partition.propagated.run(*arrays, devices=devices, force=force)
    if not (force or partition._fits):
        _check_fits(partition, arrays, _devices(partition, devices), engine)
    if engine is Engine.INTERPRETER:
        from pyshardy.runtime.interpreter import interpret

        return tuple(interpret(partition.module, _border_of(partition), arrays))
    return tuple(_local_executable(partition, devices)(arrays))


def compiled_collectives(
    partition: Partition, engine: Engine | str = Engine.LOCAL, devices: Sequence[Any] | None = None
) -> tuple[KindTotal, ...]:
    """The collectives of what XLA compiles, per kind: behind its own clean-up, which may join or drop some.

    Args:
        partition: What `partition` returns.
        engine: "local" for the per-device program, "xla" for what XLA's own partitioner makes of the propagated one.
        devices: The devices, as for `run`.

    Raises:
        UsageError: Too few devices, or an engine that does not compile.
        ShardyError: XLA cannot compile the program.
    """
    from pyshardy.runtime.hlo import hlo_kinds

    engine = _engine(engine)
    if engine is Engine.INTERPRETER:
        raise UsageError("looking at a compiled program", got="the interpreter", needed="an engine that compiles")
    if engine is Engine.XLA:
        return hlo_kinds(partition.propagated.executable(devices).as_text())
    return hlo_kinds(_local_executable(partition, devices).as_text())


def _check_fits(partition: Partition, arrays: Sequence[Any], devices: Sequence[Any] | None, engine: Engine) -> None:
    """Refuse a first run of what the virtual devices of this process have no memory for."""
    from pyshardy.runtime.local import devices_in_memory
    from pyshardy.runtime.memory import check_memory, placed_bytes

    count = partition.device_count
    if engine is Engine.LOCAL:
        count = devices_in_memory(devices, count)
    check_memory(f"running a program on {count} devices", count * partition.bytes_per_device - placed_bytes(arrays))
    partition._fits = True


def _border_of(partition: Partition) -> Any:
    from pyshardy.runtime.local import Border

    return Border(tuple(partition.inputs), tuple(partition.outputs), partition.meshes)


def _engine(engine: Engine | str) -> Engine:
    try:
        return Engine(engine)
    except ValueError:
        names = ", ".join(member.value for member in Engine)
        raise UsageError(
            "running a partitioned program", got=f"the engine {engine!r}", needed=f"one of {names}"
        ) from None


def _local_executable(partition: Partition, devices: Sequence[Any] | None) -> Any:
    """The compiled program for these devices, compiled once."""
    from pyshardy.runtime.local import LocalExecutable

    devices = _devices(partition, devices)
    key = None if devices is None else tuple(devices)
    found = partition._executables.get(key)
    if found is None:
        found = partition._executables[key] = LocalExecutable(partition.module, _border_of(partition), devices)
    return found


def _devices(partition: Partition, devices: Sequence[Any] | None) -> Sequence[Any] | None:
    """The devices that are given, or else those that a JAX function was lowered for; None for those that JAX has."""
    from pyshardy.frontend.from_jax import JaxSignature

    origin = partition.before.origin
    if devices is None and isinstance(origin, JaxSignature):
        found: Sequence[Any] | None = origin.devices
        return found
    return devices
