"""Asks a compiler what it makes of a module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from jaxlib.mlir import ir

from pyshardy.compilers.answer import CompilerAnswer
from pyshardy.compilers.plugins import Plugin, find_plugin
from pyshardy.compilers.process import Job, run_job, run_jobs
from pyshardy.compilers.store import keep, kept, key_of
from pyshardy.compilers.target import find_target
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidModuleError, ShardyError, UsageError
from pyshardy.ir.device_groups import is_along_axes, mesh_and_axes
from pyshardy.ir.diagnostics import errors_of
from pyshardy.ir.functions import arg_attrs, main_function, result_attrs, result_count, set_arg_attr, set_result_attr
from pyshardy.ir.hlo import bytecode_of_hlo_proto
from pyshardy.ir.hlo_proto import hlo_module_proto
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.read import read_module
from pyshardy.ir.shardings import module_meshes

TIMEOUT_S = 600.0
"""The time that a compiler gets by default."""
_GIVEN = ("sdy.sharding", "mhlo.sharding")
_NAMES = ("jax.result_info", "jax.buffer_donor", "tf.aliasing_output", "mhlo.memory_kind")
_INSPECTION = "InspectSharding"
_PARTITIONER = "CustomSPMDPartitioning"
_COPY = "mhlo.copy"
_STAND_INS = {b"\x12\x05mulhi": b"\x12\x05power"}
"""Opcodes of libtpu that jaxlib lacks, as fields of a proto, each with another elementwise one of the same length."""


def ask(
    module: Module,
    compiler: str,
    *,
    to_the_end: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> CompilerAnswer:
    """What a compiler says of a module; from the cache if it was asked before.

    Args:
        module: The module, as the user annotated it.
        compiler: The name of the compiler, such as "tpu:v5e:2x4".
        to_the_end: Whether to compile to the end; else until the program is partitioned.
        timeout_s: The limit in seconds.

    Raises:
        UsageError: The compiler is not installed, or its topology does not fit the program's mesh.
        ShardyError: It refuses the program, crashes, or takes too long.
    """
    job, plugin = _job(module, compiler, to_the_end)
    key = key_of(job, plugin)
    answer = kept(key)
    if answer is None:
        answer = run_job(job, plugin, timeout_s)
        keep(key, answer)
    return answer


def ask_all(modules: Sequence[Module], compiler: str, timeout_s: float = TIMEOUT_S) -> list[CompilerAnswer]:
    """What a compiler makes of several modules to the end; those that are not in the cache compile at the same time.

    Args:
        modules: The modules.
        compiler: The name of the compiler.
        timeout_s: The limit in seconds, for all together.

    Raises:
        UsageError: As for `ask`.
        ShardyError: It refuses one of them, crashes, or takes too long.
    """
    asked = [_job(module, compiler, to_the_end=True) for module in modules]
    keys = [key_of(job, plugin) for job, plugin in asked]
    known = {key: kept(key) for key in keys}
    left = {key: job for key, (job, _) in zip(keys, asked) if known[key] is None}
    if left:
        for key, found in zip(left, run_jobs(list(left.values()), asked[0][1], timeout_s)):
            keep(key, found)
            known[key] = found
    return [answer for key in keys if (answer := known[key]) is not None]


def _job(module: Module, compiler: str, to_the_end: bool) -> tuple[Job, Plugin]:
    """The job of a question, and who is asked."""
    root = module.root
    target = find_target(compiler, _device_count(root))
    main = main_function(root)
    inputs = tuple(_is_open(arg_attrs(main, one.index)) for one in main.region.blocks[0].args)
    outputs = tuple(_is_open(result_attrs(main, index)) for index in range(result_count(main)))
    options = getattr(module.origin, "compiler_options", ())
    plugin = find_plugin(target.platform)
    return Job(_for_compiler(module).bytecode(), target, inputs, outputs, to_the_end, options), plugin


def _device_count(root: Op) -> int:
    """The number of devices of a program's meshes.

    Raises:
        UsageError: It has no mesh.
    """
    counts = {prod(size for _, size in mesh.axes) for mesh in module_meshes(root).values() if mesh.axes}
    if not counts:
        needed = "a program with shardings on a mesh"
        raise UsageError("asking a compiler", got="a program without a mesh", needed=needed, hint="--mesh and --shard")
    return max(counts)


def _is_open(attrs: Any) -> bool:
    """Whether the compiler may choose the sharding of an input or output, as for `jax.jit` where none is given."""
    return not any(name in attrs for name in _GIVEN)


def _for_compiler(module: Module) -> Module:
    """The module as JAX would pass it to the compiler."""
    main = main_function(module.root)
    is_ready = main.attrs.get("sym_name") == "main" and main.attrs.get("sym_visibility") != "private"
    if is_ready and not any(map(_is_inspection, walk(module.root))):
        return module
    root = module.copy_root()
    main = main_function(root)
    main.set_attr("sym_name", "main")
    main.remove_attr("sym_visibility")
    for op in [op for op in walk(root) if _is_inspection(op)]:  # it has an address in the process that lowered it
        op.result.replace_uses(op.operands[0])
        op.erase()
    return module.with_root(root)


def _is_inspection(op: Op) -> bool:
    return op.name == "stablehlo.custom_call" and _INSPECTION in str(op.attrs.get("call_target_name"))


def given_module(answer: CompilerAnswer, module: Module) -> Module:
    """The module that a compiler passed to Shardy, in the context of the user's module and with its names.

    Shardings are still in HLO's notation.

    Args:
        answer: The answer of the compiler.
        module: The user's module.
    """
    found = _module(answer.given, module, f"what {answer} passed to Shardy")
    _name_as(found, module)
    return found


def _name_as(found: Module, module: Module) -> None:
    """Give the inputs and outputs of a compiler's module the names of the user's, and what is donated."""
    main, users = main_function(found.root), main_function(module.root)
    for argument, known in zip(main.region.blocks[0].args, users.region.blocks[0].args):
        argument.location = known.location
        for name, value in _kept_attrs(arg_attrs(users, known.index)):
            set_arg_attr(main, argument.index, name, value)
    for index in range(result_count(users)):
        for name, value in _kept_attrs(result_attrs(users, index)):
            set_result_attr(main, index, name, value)


def partitioned_module(answer: CompilerAnswer, module: Module) -> Module:
    """The program of one device that a compiler made, in the context of the user's module.

    Raises:
        ShardyError: The compiler stopped before, or could not call a partitioner of the program.
    """
    if answer.partitioned is None:
        raise ShardyError(
            "asking a compiler to partition a program",
            got=answer.error or "no partitioned program in its dump",
            needed=f"a program that {answer} partitions",
        )
    called = next((op for op in walk(module.root) if _calls_partitioner(op)), None)
    if called is not None:  # the compiler took it for an op that it does not know, and gathered for it
        raise ShardyError(
            "asking a compiler to partition a program",
            where=format_location(called.location),
            got="a partitioner that is a Python function (custom_partitioning), which is not in the compiler's process",
            needed="a program without; its shardings are answered",
            hint="without a compiler, pyshardy calls the partitioner",
        )
    found = _module(answer.partitioned, module, f"what {answer} partitioned")
    _name_as(found, module)
    with module.context:
        _use_meshes_of(module_meshes(module.root), found)
        _without_copies(found)
    return found


def _without_copies(found: Module) -> None:
    """Erase copies, which partitioners put around loops; later steps of the compiler keep only those that it needs."""
    for op in [op for op in walk(found.root) if op.name == _COPY]:
        op.result.replace_uses(op.operands[0])
        op.erase()


def _calls_partitioner(op: Op) -> bool:
    return op.name == "stablehlo.custom_call" and _PARTITIONER in str(op.attrs.get("call_target_name"))


def _use_meshes_of(users: Mapping[str, Mesh], found: Module) -> None:
    """Express the groups of devices along the user's meshes, or as lists, as a compiler may have meshes of its own."""
    meshes = module_meshes(found.root)
    for op in walk(found.root):
        groups = op.attrs.get("replica_groups")
        if groups is not None and is_along_axes(groups):
            name, mesh, axes = mesh_and_axes(groups, meshes)
            if name is None or users.get(name) != mesh:
                op.set_attr("replica_groups", found.attrs.device_rows(replica_groups(axes, mesh)))
    for op in [op for op in found.root.region.block if op.name == "sdy.mesh"]:
        if users.get(op.attrs["sym_name"]) != op.attrs["mesh"]:
            op.erase()


def _module(proto: bytes, module: Module, name: str) -> Module:
    content = hlo_module_proto(proto)
    assert content is not None
    for opcode, stand_in in _STAND_INS.items():
        content = content.replace(opcode, stand_in)
    bytecode = bytecode_of_hlo_proto(content, name)
    with module.context, errors_of(module.context) as errors:
        try:
            parsed = ir.Module.parse(bytecode)
        except ir.MLIRError as error:
            raise InvalidModuleError(
                f"reading {name}",
                where=format_location(errors[0].location) if errors else None,
                got=errors[0].message if errors else " ".join(str(error).split()),
                needed="a valid program of ops that this jaxlib knows",
                hint="other shardings, as partitioners have faults; or a jaxlib as new as the compiler",
            ) from error
        return module.with_root(read_module(parsed, module.attrs))


def _kept_attrs(attrs: Any) -> Iterator[tuple[str, Any]]:
    yield from ((name, attrs[name]) for name in _NAMES if name in attrs)
