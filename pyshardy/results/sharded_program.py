"""A program whose shardings are final: what propagation ends with, and partitioning goes on from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.interface import Interface
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics
from pyshardy.ir.functions import arg_sharding, main_function, result_count, result_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.run import Propagated
from pyshardy.results.completed_sums import mark_completed_sums
from pyshardy.results.stopwatch import Seconds, Stopwatch
from pyshardy.transforms.context import PassContext, Traced


@dataclass(frozen=True, slots=True)
class Annotations:
    """The shardings at the border of a program as its user gave them.

    Attributes:
        inputs: Of the arguments of the main function.
        outputs: Of its results.
        meshes: The meshes by name.
    """

    inputs: tuple[TensorSharding | None, ...]
    outputs: tuple[TensorSharding | None, ...]
    meshes: Mapping[str, Mesh]

    @classmethod
    def of(cls, root: Op) -> Annotations:
        """Those of a module; none if it has no main function with a body, which propagates all the same."""
        try:
            main = main_function(root)
            arguments = main.region.blocks[0].args
        except (InvalidModuleError, IndexError):
            return cls((), (), module_meshes(root))
        inputs = tuple(arg_sharding(main, argument.index) for argument in arguments)
        outputs = tuple(result_sharding(main, index) for index in range(result_count(main)))
        return cls(inputs, outputs, module_meshes(root))


@dataclass(frozen=True, eq=False)
class ShardedProgram:
    """A program whose shardings are final.

    Attributes:
        before: The module it was read from.
        options: How shardings propagated, as the user gave it.
        applied: The same with the view that was meant for this module.
        annotations: The shardings that the user gave.
        root: The program as nodes; nobody changes them.
        propagated: What propagation found, with its steps if they were asked for.
        traced: The same with the nodes that its numbers stand for, if they were asked for; not those of `root`.
        diagnostics: What the user should know.
        stages: Name and seconds of every stage up to here.
        passes: The same for every pass.
        completes_sums: Whether it has collectives that complete sums; they are marked.
    """

    before: Module
    options: PropagateOptions
    applied: PropagateOptions
    annotations: Annotations
    root: Op
    propagated: tuple[Propagated, ...]
    traced: tuple[Traced, ...]
    diagnostics: tuple[Diagnostic, ...]
    stages: Seconds
    passes: Seconds
    completes_sums: bool = False

    @cached_property
    def interface(self) -> Interface:
        """The inputs, outputs and meshes of the whole program."""
        return Interface.of(self.root)

    def copy_root(self) -> Op:
        """The nodes once more, to work on."""
        with self.before.context, pause_gc():
            return copy_module(self.root)


def shard(module: Module, options: PropagateOptions, dump_directory: str = "") -> tuple[ShardedProgram, Op]:
    """Read a module and propagate shardings through it, once.

    Args:
        module: The module; it is not changed.
        options: How to propagate.
        dump_directory: Where the module is written on the way; where the options say if it is empty.

    Returns:
        The program, and a copy of its nodes to go on with.

    Raises:
        PassError: A module that breaks what propagation needs; names the op.
    """
    watch = Stopwatch()
    diagnostics = Diagnostics()
    with pause_gc():
        with watch.stage("read"), module.context:
            root = module.copy_root()
            annotations = Annotations.of(root)
            if not options.user_priorities:
                transform_shardings(root, TensorSharding.without_priorities)
            completes_sums = mark_completed_sums(root, module.attrs)
            applied = for_module(options, root)
        context: PassContext | None = None
        for stage in sharding_stages(applied, dump_directory):
            with watch.stage(stage.name):
                context = run_on_root(module, root, stage.passes, diagnostics, watch.after_pass, context=context)
        with watch.stage("export"), module.context:
            kept = copy_module(root)
    program = ShardedProgram(
        before=module,
        options=options,
        applied=applied,
        annotations=annotations,
        root=kept,
        propagated=tuple(context.propagated if context else ()),
        traced=tuple(context.traced if context else ()),
        diagnostics=tuple(diagnostics.messages),
        stages=watch.stages,
        passes=watch.passes,
        completes_sums=completes_sums,
    )
    return program, root
