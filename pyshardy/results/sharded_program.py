"""A program with final shardings: the result of propagation and the start of partitioning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.annotate import store_annotation
from pyshardy.frontend.annotated import import_annotations
from pyshardy.frontend.interface import Interface
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics
from pyshardy.ir.functions import arg_sharding, entry_function, main_function, result_count, result_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.shardings import module_meshes, transform_shardings
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.importing.remove_size_one_axes import remove_size_one_axes
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.run import Propagated
from pyshardy.results.closed_over import closed_over
from pyshardy.results.completed_sums import mark_completed_sums
from pyshardy.results.stopwatch import Seconds, Stopwatch
from pyshardy.transforms.context import PassContext, Traced


@dataclass(frozen=True, slots=True)
class GivenShardings:
    """The shardings that the user gave to the inputs and outputs of a program.

    Attributes:
        inputs: The shardings of the arguments of the main function.
        outputs: The shardings of its results.
        meshes: The meshes by name.
    """

    inputs: tuple[TensorSharding | None, ...]
    outputs: tuple[TensorSharding | None, ...]
    meshes: Mapping[str, Mesh]

    @property
    def positions(self) -> tuple[frozenset[int], frozenset[int]]:
        """The positions of the inputs and of the outputs that have shardings."""
        inputs, outputs = (
            frozenset(position for position, one in enumerate(shardings) if one is not None)
            for shardings in (self.inputs, self.outputs)
        )
        return inputs, outputs

    @classmethod
    def of(cls, root: Op) -> GivenShardings:
        """The annotations of a module; none if it has no main function with a body."""
        try:
            main = entry_function(root)
        except InvalidModuleError:
            return cls((), (), module_meshes(root))
        inputs = tuple(arg_sharding(main, argument.index) for argument in main.region.blocks[0].args)
        outputs = tuple(result_sharding(main, index) for index in range(result_count(main)))
        return cls(inputs, outputs, module_meshes(root))


@dataclass(frozen=True, eq=False)
class ShardedProgram:
    """A program whose shardings are final.

    Attributes:
        before: The module it was read from.
        options: The options of propagation, as the user gave them.
        applied: The same with the view chosen for this module.
        annotations: The shardings that the user gave.
        root: The program as nodes; do not change them.
        propagated: The result of propagation, with its steps if requested.
        diagnostics: Messages for the user.
        stages: The name and seconds of every stage up to here.
        passes: The same for every pass.
        runs: The results of propagation, with the nodes that their numbers refer to; these differ from `root`, and
            later passes change them.
        edited_from: What further edits start from, an `EditState`, if this is an edit; else None.
        dumps: The directory for its dumps, beside that of the options; empty if there is none.
    """

    before: Module
    options: PropagateOptions
    applied: PropagateOptions
    annotations: GivenShardings
    root: Op
    propagated: tuple[Propagated, ...]
    diagnostics: tuple[Diagnostic, ...]
    stages: Seconds
    passes: Seconds
    runs: tuple[Traced, ...] = ()
    edited_from: object = None
    dumps: str = ""

    @cached_property
    def interface(self) -> Interface:
        """The inputs, outputs and meshes of the whole program."""
        return Interface.of(self.root)

    @cached_property
    def inspected(self) -> bool:
        """Call the callbacks of `jax.debug.inspect_array_sharding` on first use; return True."""
        if getattr(self.before.origin, "inspections", None):
            from pyshardy.runtime.inspections import answer_inspections

            answer_inspections(self.root, self.before.origin, self.interface.meshes)
        return True

    def copy_root(self) -> Op:
        """A copy of the nodes that may be changed."""
        with self.before.context, pause_gc():
            return copy_module(self.root)


@dataclass(frozen=True, slots=True, eq=False)
class Imported:
    """A program that import passes have prepared for propagation.

    Attributes:
        module: The module it was read from.
        options: The options of propagation, as the user gave them.
        applied: The same with the view chosen for this module.
        annotations: The shardings that the user gave.
        root: The program as nodes.
        context: The context that the passes share.
        diagnostics: The collector of warnings.
        watch: The stopwatch of the stages.
        dumps: A directory for dumps, beside that of the options; empty if there is none.
    """

    module: Module
    options: PropagateOptions
    applied: PropagateOptions
    annotations: GivenShardings
    root: Op
    context: PassContext | None
    diagnostics: Diagnostics
    watch: Stopwatch
    dumps: str = ""

    def annotated(self, annotations: Iterable[tuple[str, int, TensorSharding | None]]) -> Imported:
        """A copy with other annotations.

        It is what import makes of the program with these annotations, unless the passes before propagation depend on
        them: see `pyshardy.results.edit_scope`.

        Args:
            annotations: Kinds ("arg_attrs" for inputs, "res_attrs" for outputs), positions and shardings.
        """
        with pause_gc(), self.module.context:
            root = copy_module(self.root)
            main = main_function(root)
            for kind, index, sharding in annotations:
                store_annotation(main, kind, index, prepared(sharding, self.options, self.annotations.meshes))
        specs = OpSpecReader() if self.context is None else self.context.specs
        context = PassContext(root, self.module.attrs, specs, Diagnostics(list(self.diagnostics.messages)))
        return replace(self, root=root, context=context, diagnostics=context.diagnostics, watch=Stopwatch())


def prepared(sharding: TensorSharding | None, options: PropagateOptions, meshes: Meshes) -> TensorSharding | None:
    """An annotation in the form that propagation reads.

    Args:
        sharding: The annotation as a user gives it.
        options: The options of propagation, as the user gave them.
        meshes: The meshes of the program as it was given.
    """
    if sharding is None:
        return None
    if not options.user_priorities:
        sharding = sharding.without_priorities()
    if any(size == 1 for mesh in meshes.values() for _, size in mesh.axes):
        sharding = remove_size_one_axes(sharding, mesh_of(sharding, meshes))
    return sharding


def import_program(module: Module, options: PropagateOptions, dump_directory: str = "", dumps: str = "") -> Imported:
    """Read a module and prepare it for propagation; the arguments are those of `shard`."""
    watch = Stopwatch()
    diagnostics = Diagnostics(list(closed_over(module.root)))
    with pause_gc():
        with watch.stage("read"), module.context:
            annotations = GivenShardings.of(module.root)
            root = _start(module, options)
            if not options.user_priorities:
                transform_shardings(root, TensorSharding.without_priorities)
            mark_completed_sums(root, module.attrs)
            applied = for_module(options, root)
            if dumps and not dump_directory and not options.dump_directory:
                applied = replace(applied, dump_directory=dumps)
        first = sharding_stages(applied, dump_directory)[0]
        with watch.stage(first.name):
            context = run_on_root(module, root, first.passes, diagnostics, watch.after_pass)
    return Imported(module, options, applied, annotations, root, context, diagnostics, watch, dumps)


def _start(module: Module, options: PropagateOptions) -> Op:
    """The nodes that propagation starts from, to work on; with a compiler, those that it passes to Shardy.

    Raises:
        UsageError: The compiler is not installed, or does not fit the program.
        ShardyError: The compiler refuses the program.
    """
    if not options.compiler:
        return module.copy_root()
    from pyshardy.compilers.ask import ask, given_module

    return import_annotations(given_module(ask(module, options.compiler), module)).root


def propagate_in_place(imported: Imported, dump_directory: str = "") -> PassContext:
    """Propagate through the nodes of a prepared program; return what the passes share."""
    module, watch, context = imported.module, imported.watch, imported.context
    for stage in sharding_stages(imported.applied, dump_directory)[1:]:
        with watch.stage(stage.name):
            passes, diagnostics = stage.passes, imported.diagnostics
            context = run_on_root(module, imported.root, passes, diagnostics, watch.after_pass, context=context)
    assert context is not None
    return context


def finish_sharding(
    imported: Imported, dump_directory: str = "", edited_from: object = None
) -> tuple[ShardedProgram, Op]:
    """Propagate through a prepared program; its nodes must not be used afterwards."""
    module, root, watch, diagnostics = imported.module, imported.root, imported.watch, imported.diagnostics
    with pause_gc():
        context = propagate_in_place(imported, dump_directory)
        with watch.stage("export"), module.context:
            kept = copy_module(root)
    program = ShardedProgram(
        before=module,
        options=imported.options,
        applied=imported.applied,
        annotations=imported.annotations,
        root=kept,
        propagated=tuple(context.propagated),
        diagnostics=tuple(diagnostics.messages),
        stages=watch.stages,
        passes=watch.passes,
        runs=tuple(context.runs),
        edited_from=edited_from,
        dumps=imported.dumps,
    )
    return program, root


def shard(
    module: Module, options: PropagateOptions, dump_directory: str = "", dumps: str = ""
) -> tuple[ShardedProgram, Op]:
    """Read a module and propagate shardings through it, once.

    Args:
        module: The module; it does not change.
        options: The options of propagation.
        dump_directory: The directory for dumps of the stages; if empty, the options decide.
        dumps: A directory for dumps at this and all later stages, if neither gives one.

    Returns:
        The program, and a copy of its nodes that may be changed.

    Raises:
        PassError: The module breaks a requirement of propagation; the error names the op.
    """
    with pause_gc():
        return finish_sharding(import_program(module, options, dump_directory, dumps), dump_directory)
