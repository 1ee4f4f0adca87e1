"""The public functions and their results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyshardy.core.boxes import local_shape
from pyshardy.core.mesh import device_count
from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.frontend.annotate import core_mesh
from pyshardy.frontend.annotated import Axes, import_annotations
from pyshardy.frontend.from_export import is_exported, is_lowered, is_traced
from pyshardy.frontend.from_text import BYTECODE_MAGIC, STANDARD_INPUT
from pyshardy.frontend.interface import Port, input_ports, output_ports
from pyshardy.frontend.load import load_content, load_path
from pyshardy.frontend.result_shardings import ResultShardings
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics, source_position
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.ir.shardings import Meshes, get_sharding, module_meshes, transform_shardings
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.pipelines import for_module, propagation_passes
from pyshardy.propagation.options import PropagateOptions, View
from pyshardy.propagation.trace import Step
from pyshardy.propagation.user_priorities import up_to
from pyshardy.report.summary import Summary, TensorRow, format_shape
from pyshardy.report.tables import summary_html, summary_text

REPLICATED = "replicated"


def load(
    source: Any,
    *example_args: Any,
    in_shardings: Any = None,
    out_shardings: Any = None,
    allow_unregistered_dialects: bool = False,
    module: str | None = None,
    mesh: Any = None,
    isolate: bool = False,
    platform: str | None = None,
    **keywords: Any,
) -> Module:
    """A StableHLO module from wherever it is.

    Shardings that are in HLO's notation, as in dumps of XLA and in programs made for GSPMD, are imported into the
    `sdy` dialect.

    Args:
        source: A path (of StableHLO, HLO, or what `jax.export` writes), a directory that XLA dumped to, StableHLO or
            HLO as text or bytes, an MLIR module of jaxlib, what `jax.jit(f).lower(...)`, `.trace(...)` or
            `jax.export.export(f)(...)` returns, serialized or not, or a function, jitted (by JAX, `nnx.jit` or
            `eqx.filter_jit`) or not.
        example_args: For a function, its arguments: arrays or `jax.ShapeDtypeStruct`s.
        in_shardings: For a function that is not jitted, as for `jax.jit`; specs are over `mesh`. Also with
            `pyshardy.PartitionSpec`s and `TensorSharding`s, which say more.
        out_shardings: The same for the results.
        allow_unregistered_dialects: Whether text and bytecode may hold ops of dialects that jaxlib does not know, in
            generic form. An MLIR module may if its context allows them.
        module: For a directory with several modules, the name of one; it may also stand in the path, behind `::`.
        mesh: For a function, the mesh it is for: a mesh of JAX; or axes with sizes, as `{"data": 32, "model": 16}`, or
            a `jax.sharding.AbstractMesh`, for which no devices are needed. For anything else the axes that GSPMD's
            tilings are over; found without.
        isolate: Whether files, text and bytes are read in a process of their own, for half a second more: for bytecode
            that is not trusted, which may end MLIR's reader. Then that is an `InvalidModuleError`.
        platform: For a function, what it is lowered for: "cpu", "tpu", "cuda" or "rocm"; by default where it would run.
        keywords: For a function, `static_argnums`, `donate_argnums`, `keep_unused` and so on are for `jax.jit`; the
            others are the function's own keyword arguments.

    Raises:
        UsageError: Nothing that a module can be made of, a file that cannot be read, or arguments for what is no
            function.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation that cannot be imported; names the op.

    >>> text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    >>> load(text).text().startswith("module {")
    True
    """
    if isolate and not isinstance(source, (str, Path, bytes, bytearray, memoryview)):
        needed = "a path, text or bytes"
        raise UsageError("loading a module", got=f"isolate=True for a {type(source).__name__}", needed=needed)
    if callable(source) and module is None and not is_traced(source):
        from pyshardy.frontend.from_jax import load_function

        return load_function(source, example_args, in_shardings, out_shardings, mesh, platform, keywords)
    if example_args or keywords or in_shardings is not None or out_shardings is not None:
        raise UsageError(
            "loading a module",
            got=f"arguments or shardings for a {type(source).__name__}",
            needed="them for a function alone",
            hint="its function .apply" if hasattr(source, "apply") else None,
        )
    if is_traced(source):
        from pyshardy.frontend.from_jax import load_traced

        return load_traced(source, mesh, platform)
    if platform is not None:
        needed = "it for a function that is not lowered yet"
        raise UsageError("loading a module", got=f"platform={platform!r} for a {type(source).__name__}", needed=needed)
    mesh = None if mesh is None else dict(core_mesh(mesh).axes)
    if isinstance(source, Path) or (isinstance(source, str) and not _is_text(source)):
        allow = allow_unregistered_dialects
        return load_path(source, module=module, mesh=mesh, allow_unregistered_dialects=allow, isolate=isolate)
    if module is not None:
        needed = "a directory that XLA dumped to"
        raise UsageError("loading a module", got=f"module={module!r} for a {type(source).__name__}", needed=needed)
    if isinstance(source, Module):
        return source if mesh is None else import_annotations(source, mesh)
    if isinstance(source, (bytes, bytearray, memoryview)):
        return load_content(bytes(source), STANDARD_INPUT, mesh, allow_unregistered_dialects, isolate)
    if isinstance(source, str):
        return load_content(source.encode(), "the text", mesh, allow_unregistered_dialects, isolate)
    return _load_object(source, mesh)


def _load_object(source: Any, mesh: Axes) -> Module:
    """What JAX makes of a function, or an MLIR module."""
    if is_exported(source) or is_lowered(source):
        from pyshardy.frontend import from_jax

        return from_jax.load_exported(source, mesh) if is_exported(source) else from_jax.load_lowered(source, mesh)
    if hasattr(source, "operation"):
        return load_content(_bytecode(source), "the module", mesh, source.context.allow_unregistered_dialects)
    raise UsageError(
        "loading a module",
        got=f"a {type(source).__name__}",
        needed="a path, StableHLO or HLO, an MLIR module, a lowered or exported JAX function, or a function",
    )


def _is_text(source: str) -> bool:
    return "\n" in source or "{" in source or source.startswith(BYTECODE_MAGIC.decode("latin1"))


def _bytecode(module: Any) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


@dataclass
class Propagation(ResultShardings):
    """A module with a sharding for every tensor.

    Attributes:
        module: The module after propagation, with shardings on arguments, results and ops.
        before: The module it came from.
        options: How it was propagated.
        steps: Every axis placed on every value, if `options.trace` asked for it.
        diagnostics: What the user should know.
        stages: Name and seconds of every step taken.
    """

    module: Module
    before: Module
    options: PropagateOptions = field(default_factory=PropagateOptions)
    steps: tuple[Step, ...] = ()
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    stages: list[tuple[str, float]] = field(default_factory=list)
    _executables: dict[Any, Any] = field(default_factory=dict, repr=False)
    _fits: bool = field(default=False, repr=False)

    @property
    def meshes(self) -> Meshes:
        """The meshes of the module by name."""
        return module_meshes(self.module.root)

    @cached_property
    def inputs(self) -> list[Port]:
        """The inputs with their shardings."""
        return input_ports(self.module.root)

    @cached_property
    def outputs(self) -> list[Port]:
        """The outputs with their shardings."""
        return output_ports(self.module.root)

    def after_priority(self, priority: int) -> Propagation:
        """The program as it is after the rounds up to a user priority: what is annotated for later ones is ignored.

        Args:
            priority: The last priority to take part, from 0.

        >>> module = load('''
        ... sdy.mesh @mesh = <["x"=2, "y"=2]>
        ... func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}p1]>})
        ...     -> tensor<8x8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8x8xf32>
        ...   return %0 : tensor<8x8xf32>
        ... }''')
        >>> propagate(module).after_priority(0).outputs[0].sharding
        TensorSharding(<@mesh, [{"x"}, {}]>)
        """
        root = self.before.copy_root()
        meshes = module_meshes(root)
        transform_shardings(root, lambda sharding: up_to(sharding, meshes, priority))
        return propagate(self.before.with_root(root), self.options)

    @cached_property
    def summary(self) -> Summary:
        """What the propagated program looks like from outside, as plain data."""
        return _summarize(self)

    def run(self, *arrays: Any, devices: Sequence[Any] | None = None, force: bool = False) -> tuple[Any, ...]:
        """The outputs of the program, run on the devices of its mesh under the shardings found.

        Args:
            arrays: The inputs, one global array per input.
            devices: The devices; by default those that the function was lowered for, or those JAX has.
            force: Whether to run a program that seems to need more memory than this machine has for virtual devices.

        Raises:
            UsageError: Inputs that do not fit, too few devices, or too little memory.
            ShardyError: What XLA cannot compile or run.
        """
        if not (force or self._fits):
            self._check_fits(arrays, devices)
        return tuple(self.executable(devices)(arrays))

    @cached_property
    def bytes_on_all_devices(self) -> int:
        """An estimate of the most that all devices hold at a time: as much as one would, or else all their inputs."""
        from pyshardy.runtime.memory import peak_bytes

        ports = [*self.inputs, *self.outputs]
        shards = sum(tensor_bytes(_local(port, self.meshes), port.element) for port in ports)
        return max(peak_bytes(self.module.root), device_count(self.meshes) * shards)

    def _check_fits(self, arrays: Sequence[Any], devices: Sequence[Any] | None) -> None:
        """Refuse a first run of what the virtual devices of this process have no memory for."""
        from pyshardy.runtime.local import devices_in_memory
        from pyshardy.runtime.memory import check_memory, placed_bytes

        count = device_count(self.meshes)
        here = devices_in_memory(devices, count)
        needed = self.bytes_on_all_devices * here // count - placed_bytes(arrays)
        check_memory(f"running a program on {here} devices", needed)
        self._fits = True

    def executable(self, devices: Sequence[Any] | None = None) -> Any:
        """What XLA's partitioner makes of the program for these devices; compiled once."""
        from pyshardy.runtime.execute import GlobalExecutable

        key = None if devices is None else tuple(devices)
        if key not in self._executables:
            self._executables[key] = GlobalExecutable(self.module, devices)
        return self._executables[key]

    def __str__(self) -> str:
        return summary_text(self.summary)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return summary_html(self.summary)


def propagate(
    module: Module, options: PropagateOptions = PropagateOptions(), *, view: View | str | None = None
) -> Propagation:
    """Infer a sharding for every tensor of a module; the module given is not changed.

    Args:
        module: What `load` returns.
        options: How to propagate.
        view: "xla" for the answer that `jax.jit` gives, "stablehlo" for that of Shardy's passes on the module as it
            stands; by default as the options say, which is the first.

    Raises:
        UsageError: There is no such view.
        PassError: A module that breaks what propagation needs; names the op.

    >>> module = load('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }''')
    >>> propagate(module).outputs[0].sharding
    TensorSharding(<@mesh, [{"x"}]>)
    """
    options = options.with_view(view)
    stages: dict[str, float] = {}
    diagnostics = Diagnostics()
    with _timed(stages, "read"):
        root = module.copy_root()
        if not options.user_priorities:
            transform_shardings(root, TensorSharding.without_priorities)
    stage_of = _stage_names()

    def after_pass(pass_: Pass, _: Any, seconds: float) -> None:
        stage = stage_of(pass_)
        stages[stage] = stages.get(stage, 0.0) + seconds

    context = run_on_root(module, root, propagation_passes(for_module(options, root)), diagnostics, after_pass)
    result = module.with_root(root)
    with _timed(stages, "write"):
        _ = result.mlir
    steps = tuple(step for record in context.propagated for step in record.steps)
    return Propagation(result, module, options, steps, diagnostics, list(stages.items()))


def _stage_names() -> Callable[[Pass], str]:
    """Names the stage of a pass: import up to propagation, export behind it."""
    seen: list[str] = []

    def name(pass_: Pass) -> str:
        if pass_.name.endswith("-propagate"):
            seen.append(pass_.name)
            return "propagate"
        return "export" if seen else "import"

    return name


@contextmanager
def _timed(stages: dict[str, float], name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    stages[name] = stages.get(name, 0.0) + time.perf_counter() - start


def _summarize(propagation: Propagation) -> Summary:
    before, after = propagation.before.root, propagation.module.root
    meshes_before, meshes = module_meshes(before), propagation.meshes
    sharded = replicated = 0
    for op in walk(after):
        for result in op.results:
            if result.type.is_ranked_tensor:
                sharding = get_sharding(result)
                is_sharded = sharding is not None and not sharding.is_fully_replicated
                sharded, replicated = sharded + is_sharded, replicated + (not is_sharded)
    inputs = _rows(input_ports(before), propagation.inputs, meshes_before, meshes)
    outputs = _rows(output_ports(before), propagation.outputs, meshes_before, meshes)
    return Summary(
        title=_title(propagation),
        meshes=tuple((name, str(mesh)) for name, mesh in meshes.items() if mesh.axes),
        inputs=inputs,
        outputs=outputs,
        tensors_sharded=sharded,
        tensors_replicated=replicated,
        stages=tuple(propagation.stages),
        warnings=(
            *(warning_text(message, propagation.before.name) for message in propagation.diagnostics.messages),
            *_lost("input", inputs),
            *_lost("output", outputs),
        ),
    )


def warning_text(diagnostic: Diagnostic, name: str = "-") -> str:
    """A message with its place, if it has one; `name` is what to call the text that the module was read from."""
    position = source_position(diagnostic.location)
    if position is None:
        return diagnostic.message
    file, *place = position
    return ":".join(map(str, (name if file == "-" else file, *place))) + f": {diagnostic.message}"


def _lost(side: str, rows: Iterable[TensorRow]) -> Iterator[str]:
    """What to say of annotations that are not kept, since inputs and outputs have even shards."""
    for row in rows:
        if row.bytes_per_device > row.bytes_per_device_before:
            shape = format_shape(row.shape, row.dtype)
            yield f"{side} {row.name} is split less than annotated: {row.sharding} divides {shape} evenly"


def _title(propagation: Propagation) -> str:
    root = propagation.module.root
    name = root.shared_attrs.get("sym_name")
    return (
        f"module {format_symbol(name)}" if name else f"function {format_symbol(main_function(root).attrs['sym_name'])}"
    )


def _rows(before: list[Port], after: list[Port], meshes_before: Meshes, meshes: Meshes) -> tuple[TensorRow, ...]:
    return tuple(_row(old, new, meshes_before, meshes) for old, new in zip(before, after))


def _row(old: Port, new: Port, meshes_before: Meshes, meshes: Meshes) -> TensorRow:
    local = _local(new, meshes)
    shapes = new.shape, local, _local(old, meshes_before)
    try:
        total, per_device, before = (tensor_bytes(shape, new.element) for shape in shapes)
    except InvalidModuleError as error:
        raise error.located(error.doing, new.name) from None
    return TensorRow(
        name=new.name,
        shape=new.shape,
        dtype=new.element,
        sharding=_describe(new.sharding),
        local_shape=local,
        bytes_total=total,
        bytes_per_device=per_device,
        bytes_per_device_before=before,
        is_inferred=_splits(new.sharding) and not _splits(old.sharding),
    )


def _local(port: Port, meshes: Meshes) -> tuple[int, ...]:
    if port.sharding is None:
        return port.shape
    return local_shape(port.sharding, mesh_of(port.sharding, meshes), port.shape)


def _splits(sharding: TensorSharding | None) -> bool:
    return sharding is not None and not sharding.is_fully_replicated


def _describe(sharding: TensorSharding | None) -> str:
    if sharding is None or (not _splits(sharding) and not sharding.unreduced):
        return REPLICATED
    unreduced = ", ".join(map(str, sharding.unreduced))
    return "[" + ", ".join(map(str, sharding.dims)) + "]" + (f" unreduced {unreduced}" if unreduced else "")
