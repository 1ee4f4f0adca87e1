"""The public functions that load, propagate and partition programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypedDict, Unpack

from pyshardy.compilers.choice import compiler_of
from pyshardy.compilers.target import compiler_name
from pyshardy.core.options import options_of, unknown_option
from pyshardy.core.text import named_type
from pyshardy.errors import ShardyError, UsageError
from pyshardy.frontend.annotate import core_mesh
from pyshardy.frontend.annotated import Axes, import_annotations
from pyshardy.frontend.from_export import is_exported, is_lowered, is_traced
from pyshardy.frontend.from_text import BYTECODE_MAGIC, STANDARD_INPUT
from pyshardy.frontend.load import load_content, load_path
from pyshardy.ir.module import Module
from pyshardy.ir.strings import utf8_bytes
from pyshardy.passes.partition_options import PartitionOptions
from pyshardy.propagation.options import PropagateOptions, StrategyOption, View
from pyshardy.results.dumps import new_folder
from pyshardy.results.partition import Partition, finish_partition
from pyshardy.results.program_result import ProgramResult
from pyshardy.results.propagation import Propagation, finish_propagation
from pyshardy.results.sharded_program import shard


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
    """Load a StableHLO module from a file, text, an MLIR module or a JAX function.

    Shardings in HLO's notation, as in dumps of XLA and in programs made for GSPMD, are imported into the `sdy` dialect.

    Args:
        source: A path (of StableHLO, of HLO, or of a `jax.export` file); a directory that XLA dumped to; StableHLO or
            HLO as text or bytes; an MLIR module of jaxlib; the result of `jax.jit(f).lower(...)`, `.trace(...)` or
            `jax.export.export(f)(...)`, serialized or not; or a function, jitted (by JAX, `nnx.jit` or
            `eqx.filter_jit`) or not.
        example_args: For a function, its arguments: arrays or `jax.ShapeDtypeStruct`s.
        in_shardings: For a function that is not jitted, the same as for `jax.jit`; specs refer to `mesh`.
            `pyshardy.PartitionSpec` and `TensorSharding` work too and can express more.
        out_shardings: The same for the results.
        allow_unregistered_dialects: Whether text and bytecode may hold ops of dialects that jaxlib does not know, in
            generic form. For an MLIR module, its context decides.
        module: For a directory with several modules, the name of one; the path may also give it, after `::`.
        mesh: For a function, its mesh: a mesh of JAX; or axes with sizes, such as `{"data": 32, "model": 16}`, or a
            `jax.sharding.AbstractMesh`, which need no devices. For any other program, the mesh axes of GSPMD tilings;
            by default pyshardy derives them.
        isolate: Whether to read files, text and bytes in a separate process, which takes half a second more. Use it for
            untrusted bytecode, which may crash MLIR's reader; the crash is then an `InvalidModuleError`.
        platform: For a function, the platform to lower it for: "cpu", "tpu", "cuda" or "rocm"; by default JAX's own.
        keywords: For a function: `static_argnums`, `donate_argnums`, `keep_unused` and the like go to `jax.jit`; the
            others are keyword arguments of the function.

    Raises:
        UsageError: The source is none of these, a file cannot be read, or there are arguments without a function.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> text = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    >>> load(text).text().startswith("module {")
    True
    """
    if isolate and not isinstance(source, (str, Path, bytes, bytearray, memoryview)):
        raise _unfit("isolate=True", source, "a path, text or bytes")
    if callable(source) and module is None and not is_traced(source):
        from pyshardy.frontend.from_jax import check_arguments, load_function

        check_arguments(source, example_args, keywords)
        return load_function(source, example_args, in_shardings, out_shardings, mesh, platform, keywords)
    if example_args or keywords or in_shardings is not None or out_shardings is not None:
        hint = "its function .apply" if hasattr(source, "apply") else None
        raise _unfit("arguments or shardings", source, "arguments and shardings only for a function", hint)
    if is_traced(source):
        from pyshardy.frontend.from_jax import load_traced

        return load_traced(source, mesh, platform)
    if platform is not None:
        raise _unfit(f"platform={platform!r}", source, "a platform only for a function that is not lowered yet")
    axes = _axes(mesh)
    if isinstance(source, Path) or (isinstance(source, str) and not _is_text(source)):
        allow = allow_unregistered_dialects
        return load_path(source, module=module, mesh=axes, allow_unregistered_dialects=allow, isolate=isolate)
    if module is not None:
        raise _unfit(f"module={module!r}", source, "a module name only for a directory that XLA dumped to")
    if isinstance(source, (bytes, bytearray, memoryview)):
        return load_content(bytes(source), STANDARD_INPUT, axes, allow_unregistered_dialects, isolate)
    if isinstance(source, str):
        return load_content(utf8_bytes(source, "the text"), "the text", axes, allow_unregistered_dialects, isolate)
    return _load_object(source, axes)


def _unfit(given: str, source: Any, needed: str, hint: str | None = None) -> UsageError:
    """The error of `load` for an argument that does not suit the source."""
    return UsageError("loading a module", got=f"{given} for {named_type(source)}", needed=needed, hint=hint)


def _load_object(source: Any, mesh: Axes) -> Module:
    """A module, an MLIR module, or an object that JAX makes of a function."""
    if isinstance(source, Module):
        return source if mesh is None else import_annotations(source, mesh)
    if is_exported(source) or is_lowered(source):
        from pyshardy.frontend import from_jax

        return from_jax.load_exported(source, mesh) if is_exported(source) else from_jax.load_lowered(source, mesh)
    if hasattr(source, "operation"):
        return load_content(_bytecode(source), "the module", mesh, source.context.allow_unregistered_dialects)
    raise UsageError(
        "loading a module",
        got=f"{named_type(source)}",
        needed="a path, StableHLO or HLO, an MLIR module, a lowered or exported JAX function, or a function",
    )


def _axes(mesh: Any) -> Axes:
    """The names and sizes of the axes of a mesh of JAX or of pyshardy."""
    return mesh if mesh is None or isinstance(mesh, str) else dict(core_mesh(mesh).axes)


def _is_text(source: str) -> bool:
    return "\n" in source or "{" in source or source.startswith(BYTECODE_MAGIC.decode("latin1"))


def _bytecode(module: Any) -> bytes:
    from io import BytesIO

    stream = BytesIO()
    module.operation.write_bytecode(stream)
    return stream.getvalue()


def load_text(
    text: str | bytes,
    *,
    mesh: Any = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
    name: str = "the text",
) -> Module:
    """Load the module in a text, even if the text looks like a path; `load` guesses what a string is.

    Args:
        text: StableHLO or HLO as text, or the content of any file that `load` reads, as bytes.
        mesh: As for `load`.
        allow_unregistered_dialects: As for `load`.
        isolate: As for `load`.
        name: The name of the text in messages.

    Raises:
        UsageError: The source is neither text nor bytes.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> load_text("module @empty {}").text()
    'module @empty {\\n}\\n'
    """
    if isinstance(text, str):
        text = utf8_bytes(text, name)
    elif not isinstance(text, (bytes, bytearray, memoryview)):
        raise UsageError("loading a module from text", got=named_type(text), needed="text or bytes")
    return load_content(bytes(text), name, _axes(mesh), allow_unregistered_dialects, isolate)


def load_file(
    path: str | PathLike[str],
    *,
    module: str | None = None,
    mesh: Any = None,
    allow_unregistered_dialects: bool = False,
    isolate: bool = False,
) -> Module:
    """Load the module in a file, or in a directory that XLA dumped to; the arguments are those of `load`.

    Raises:
        UsageError: The argument is not a path, the file cannot be read, or the directory does not have the module.
        InvalidModuleError: MLIR refuses the module.
        PassError: A sharding in HLO's notation cannot be imported; the error names the op.

    >>> load_file("examples/mlp.mlir").name
    'examples/mlp.mlir'
    """
    if not isinstance(path, (str, PathLike)):
        raise UsageError("loading a module from a file", got=named_type(path), needed="a path")
    allow = allow_unregistered_dialects
    return load_path(fspath(path), module=module, mesh=_axes(mesh), allow_unregistered_dialects=allow, isolate=isolate)


class PropagateKeywords(TypedDict, total=False):
    """The options of propagation as keywords; see `PropagateOptions`."""

    strategy: StrategyOption | str
    op_priorities: bool
    user_priorities: bool
    conservative: bool
    trace: bool
    origins: bool
    edges: bool
    dump_directory: str | PathLike[str]
    dedup_functions_fully: bool
    explicit_gather_scatter_batching: bool
    view: View | str | None
    compiler: str | None


def propagate(
    program: Any, options: PropagateOptions | None = None, **keywords: Unpack[PropagateKeywords]
) -> Propagation:
    """Infer a sharding for every tensor of a program. The program given does not change.

    Args:
        program: The result of `load`, or anything that `load` takes: a lowered function, a path, text. The result of
            `propagate` or `partition` is propagated again only if the options differ.
        options: The options of propagation.
        keywords: Single options, such as `strategy="basic"`; they override `options`. `view="xla"`, the default, gives
            the shardings of `jax.jit`; `view="stablehlo"` gives those of Shardy's passes on the unchanged module.
            `compiler="tpu:v5e:2x4"` asks that compiler, and gives the shardings of its program. A function that was
            lowered for a TPU or GPU is taken to its compiler where that is installed; `compiler="none"` does without.

    Raises:
        UsageError: An option is unknown or has a value of the wrong type, or the program cannot be loaded.
        PassError: The module breaks a requirement of propagation; the error names the op.

    >>> program = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }'''
    >>> propagate(program, strategy="basic").outputs[0].sharding
    TensorSharding(<@mesh, [{"x"}]>)
    """
    known = program if isinstance(program, ProgramResult) else None
    wanted = _propagate_options(options or (known.propagate_options if known else None), keywords, "propagating")
    if known is None:
        module = _module(program)
        wanted = _with_compiler(wanted, module)
        return finish_propagation(*shard(module, wanted, dumps=_dumps(module, wanted.dump_directory)))
    wanted = _with_compiler(wanted, known.before)
    if wanted != known.propagate_options:
        dumps = _dumps(known.before, wanted.dump_directory)
        return finish_propagation(*shard(known.before, wanted, dumps=dumps))
    return known.propagated


class PartitionKeywords(PropagateKeywords, total=False):
    """The options of partitioning as keywords, and those of propagation; see `PartitionOptions`."""

    halo_exchange: bool
    mesh_axes_groups: bool | None
    rng_bit_generator_unsafe: bool
    replicate_unsupported: bool


def partition(
    program: Any,
    options: PartitionOptions | None = None,
    propagate_options: PropagateOptions | None = None,
    **keywords: Unpack[PartitionKeywords],
) -> Partition:
    """Make the program of one device, with local shapes and explicit collectives.

    Args:
        program: The result of `propagate`, or of `load`, or anything that `load` takes. It does not change.
        options: The options of partitioning.
        propagate_options: The options of propagation; by default those that the program was propagated with, or the
            defaults of `propagate`. A program that was propagated with other options is propagated again.
        keywords: Single options of both, such as `halo_exchange=False`; they override `options` and
            `propagate_options`. `dump_directory` is that of partitioning; it also gets the module before propagation,
            unless the program is propagated already.

    Raises:
        UsageError: An option is unknown or has a value of the wrong type, or the program cannot be loaded.
        PassError: The program cannot be partitioned; the error names the op.
        ShardyError: Shardings are on meshes with different numbers of devices.

    >>> program = '''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4xf32> {
    ...   %0 = stablehlo.constant dense<0.0> : tensor<f32>
    ...   %1 = stablehlo.reduce(%a init: %0) applies stablehlo.add across dimensions = [0]
    ...     : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    ...   return %1 : tensor<4xf32>
    ... }'''
    >>> found = partition(program, halo_exchange=False)
    >>> [(row.kind, row.axes, row.sent_bytes_per_device) for row in found.traffic.collectives]
    [('all_reduce', ('"x"',), 16)]
    """
    doing = "partitioning"
    own = {name: value for name, value in keywords.items() if name in _OWN}
    others = {name: value for name, value in keywords.items() if name not in _OWN}
    for name in others:
        if name not in PropagateKeywords.__annotations__:
            raise unknown_option(name, PartitionKeywords.__annotations__, doing)
    chosen = options_of(PartitionOptions, options, own, doing)
    known = program if isinstance(program, ProgramResult) else None
    wanted = _propagate_options(propagate_options or (known.propagate_options if known else None), others, doing)
    if known is not None and wanted == known.propagate_options:
        propagation = known.propagated if isinstance(known, Propagation) else None
        return _inspected(finish_partition(known.sharded, chosen, propagation=propagation))
    module = _module(program)
    wanted = _with_compiler(wanted, module)
    dumps = _dumps(module, chosen.dump_directory or wanted.dump_directory)
    sharded, root = shard(module, wanted, chosen.dump_directory, dumps)
    return _inspected(finish_partition(sharded, chosen, root))


def _inspected(found: Partition) -> Partition:
    """Call the callbacks of `jax.debug.inspect_array_sharding` with the shardings of a result; return the result."""
    _ = found.sharded.inspected
    return found


_OWN = frozenset(field.name for field in fields(PartitionOptions))


def _propagate_options(options: PropagateOptions | None, changes: Mapping[str, Any], doing: str) -> PropagateOptions:
    given = {name: value for name, value in changes.items() if not (name in ("view", "compiler") and value is None)}
    found = options_of(PropagateOptions, options, given, doing)
    if found.compiler is None:
        return found
    name = compiler_name(found.compiler)
    return found if name == found.compiler else replace(found, compiler=name)


def _with_compiler(options: PropagateOptions, module: Module) -> PropagateOptions:
    """The options, with the compiler of the program's platform if nobody chose one."""
    if options.compiler is not None:
        return options
    is_usual = options.view is View.XLA and not options.alters_results
    name = compiler_of(module) if is_usual else ""
    if name:
        from pyshardy.compilers.ask import ask

        try:
            ask(module, name)
        except ShardyError:  # nobody named a compiler: the first line of the result says how to ask, and so to see why
            name = ""
    return replace(options, compiler=name) if name else options


def _dumps(module: Module, directory: str) -> str:
    """The directory for dumps from the environment variable, if the options name none."""
    return "" if directory else new_folder(module)


def _module(program: Any) -> Module:
    """The module of an argument of `propagate` or `partition`."""
    return program.before if isinstance(program, ProgramResult) else load(program)
