"""The named pipelines, and reading any pipeline from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

from pyshardy.core.intern import register_cache
from pyshardy.errors import NotationError, UsageError
from pyshardy.ir.functions import FROM_HLO
from pyshardy.ir.listing import ops_named
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.common.save_module import Dump, SaveModule
from pyshardy.passes.exporting.export_options import ExportOptions, PartitionerStage
from pyshardy.passes.exporting.export_steps import Step, export_steps
from pyshardy.passes.options import BOOLEANS, format_value, make_pass, read_options
from pyshardy.passes.partitioning.partition_options import PartitionOptions
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import PropagateOptions, View

_UP_TO_SPLITTER = (
    "symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,sdy-propagate-sharding-from-func-to-call,"
    "sdy-constant-or-scalar-splitter"
)
_CONSTRAINTS_AND_GROUPS = "sdy-apply-sharding-constraints,sdy-sharding-group-import"
_PREPARE = (
    "sdy-flatten-call-graph,symbol-dce,sdy-add-func-data-flow-edges,sdy-apply-sharding-constraints,"
    "sdy-sink-func-data-flow-edges,sdy-sharding-group-import,sdy-import-func-calls,symbol-dce,sdy-pre-order-funcs"
)
_PREPARE_DEDUP = "sdy-add-func-data-flow-edges,sdy-pre-order-funcs"
_XLA_VIEW = (
    "symbol-dce,sdy-lift-inlined-meshes,pyshardy-dedup-meshes,pyshardy-import-result-sharding,"
    "pyshardy-drop-op-shardings,pyshardy-legalize-chlo,pyshardy-simplify,pyshardy-sink-constants,pyshardy-expand,"
    "pyshardy-inline-and-order,pyshardy-open-captured"
)
_HLO_VIEW = "pyshardy-inline-and-order"
_VIEWS = {View.XLA: [_XLA_VIEW], View.HLO: [_HLO_VIEW]}
_RESTORE = "pyshardy-restore-chlo"
_BATCHING = "sdy-explicit-gather-scatter-batching"
_PROPAGATE = "sdy-user-priority-propagate{keep-sharding-rules=true}"
_FINISH = "sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph"
_FINISH_DEDUP = "sdy-propagate-to-func-results,sdy-sink-func-data-flow-edges,sdy-unflatten-call-graph"
_OWN_BEFORE = {
    "sdy-insert-explicit-reshards": "pyshardy-dedup-meshes,pyshardy-shard-pointwise",
    "sdy-resolve-permutation-factors": "pyshardy-gather-before",
    "sdy-reshard-to-collectives": "pyshardy-share-reshards",
    "sdy-pad-for-divisibility": "pyshardy-share-reshards",
}
"""Passes that the reference does not have, and in front of which of its passes they run where `partition` does."""
_EXCHANGES_BEFORE = {
    "sdy-insert-explicit-reshards": _OWN_BEFORE["sdy-insert-explicit-reshards"]
    + ",pyshardy-exchange-shards{before-reshards=true}",
    "sdy-resolve-permutation-factors": _OWN_BEFORE["sdy-resolve-permutation-factors"] + ",pyshardy-exchange-shards",
}
"""The same where devices exchange parts of their shards."""
_KEEPS_MESHES = ExportOptions(inline_meshes=False)
_FIRST_DUMP = 1
"""The number of the first dump of the propagation pipeline: whoever compiles has dumped what it was given."""


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.pop(name, "false")
    if text not in BOOLEANS:
        raise UsageError(f"reading the pipeline option {name}", got=f"'{text}'", needed="true or false")
    if options:
        raise UsageError("reading pipeline options", got=f"'{next(iter(options))}'", needed=name)
    return BOOLEANS[text]


def _import_pipeline(options: dict[str, str]) -> list[Pass]:
    dedup = [_CONSTRAINTS_AND_GROUPS] if _flag(options, "dedup-functions-fully") else []
    return _passes_of([*_import_steps(), *dedup])


def _import_steps(batching: bool = False) -> list[Step]:
    """The steps of the import pipeline.

    Args:
        batching: Whether gathers and scatters get batching dimensions; the textual pipeline leaves them alone.
    """
    steps: list[Step] = [_UP_TO_SPLITTER, *([_BATCHING] if batching else [])]
    return [*steps, "symbol-dce,sdy-manual-axes-cleanup", Dump("before_propagation"), "sdy-add-data-flow-edges"]


def _propagation_pipeline(options: dict[str, str]) -> list[Pass]:
    return _passes_of(_propagation_steps(_flag(options, "dedup-functions-fully")))


def _propagation_steps(dedup: bool, batching: bool = False, export: ExportOptions = _KEEPS_MESHES) -> list[Step]:
    steps = _import_steps(batching)
    if dedup:
        steps += [_CONSTRAINTS_AND_GROUPS, _PREPARE_DEDUP, _PROPAGATE, _FINISH_DEDUP]
    else:
        steps += [_PREPARE, _PROPAGATE, _FINISH]
    return [*steps, "symbol-dce,sdy-insert-func-call-reshards", *export_steps(export)]


def _xla_view_pipeline(options: dict[str, str]) -> list[Pass]:
    if options:
        raise UsageError("reading pipeline options", got=f"'{next(iter(options))}'", needed="none")
    return parse_pipeline(_XLA_VIEW)


def _export_pipeline(options: dict[str, str]) -> list[Pass]:
    read = read_options(ExportOptions, options)
    return _passes_of(export_steps(read), read.dump_directory)


@lru_cache(maxsize=256)
def _passes_of_text(text: str) -> tuple[Pass, ...]:
    """The passes of a text of this package, which never changes; nor do passes, so that every run may have the same."""
    return tuple(parse_pipeline(text))


register_cache(_passes_of_text.cache_clear)


def _passes_of(steps: Iterable[Step], dump_directory: str = "", first_dump: int = 0) -> list[Pass]:
    """The passes of steps; dumps count from `first_dump` on, and there are none without a folder for them."""
    passes: list[Pass] = []
    numbers = count(first_dump)
    for step in steps:
        if not isinstance(step, Dump):
            passes += _passes_of_text(step)
        elif dump_directory:
            passes.append(SaveModule(dump_directory, next(numbers), step.title))
    return passes


PIPELINES: dict[str, Callable[[dict[str, str]], list[Pass]]] = {
    "pyshardy-xla-view-pipeline": _xla_view_pipeline,
    "sdy-import-pipeline": _import_pipeline,
    "sdy-propagation-pipeline": _propagation_pipeline,
    "sdy-export-pipeline": _export_pipeline,
}

_TOKEN = re.compile(r"\s*(?:([\w.-]+)|([(){},]))")
_INSIDE: dict[str, tuple[tuple[str, ...], ...]] = {
    "builtin.module": ((),),
    "any": ((), ("builtin.module",)),
    "func.func": ((), ("builtin.module",), ("any",)),
}
"""What passes may be nested in, and inside what that may stand; passes on functions nest by themselves."""
_ON_FUNCTIONS = (("func.func",), ("builtin.module", "func.func"), ("builtin.module", "any"), ("any", "func.func"))
_ON_ANYTHING = frozenset(["canonicalize"])
"""Passes that may be nested in functions too; that changes nothing, because no function concerns another."""
_LISTS = frozenset(["enable-patterns"])
"""Options that take one more value every time they are given; of others the last value counts."""


def for_module(options: PropagateOptions, root: Op) -> PropagateOptions:
    """The options with the view that is meant for a module: of one that was HLO, XLA has only calls to inline."""
    if options.view is not View.XLA or FROM_HLO not in root.attrs:
        return options
    return options.with_view(View.HLO if ops_named(root, ("func.call",)) else View.STABLEHLO)


def propagation_passes(options: PropagateOptions) -> list[Pass]:
    """The propagation pipeline with options that its textual form does not have.

    With a folder for dumps, it writes the module there before and after propagation and at the end, as
    `01.before_propagation.mlir`, `02.after_propagation.mlir` and `03.after_partitioner_passes.mlir`, and as
    `02.propagation_after_user_priority_0.mlir` and so on where user priorities take turns.
    """
    return _passes_with(options, options.dump_directory, _KEEPS_MESHES)


def partition_passes(options: PropagateOptions, partition: PartitionOptions) -> list[Pass]:
    """All passes from a program on whole tensors to one per device.

    Args:
        options: How shardings propagate.
        partition: How the program is partitioned.
    """
    export = ExportOptions(
        inline_meshes=False,
        partitioner_stage=PartitionerStage.CONVERT_GLOBAL_TO_LOCAL,
        rng_bit_generator_unsafe=partition.unsafe_random,
    )
    changes: dict[str, dict[str, Any]] = {
        "sdy-insert-explicit-reshards": {"name_causes": True},
        "sdy-resolve-permutation-factors": {
            "enable_halo_exchange": partition.halo_exchange,
            "exchange_windows": True,
            "name_causes": True,
        },
        "sdy-convert-global-to-local": {
            "enable_rgv3": partition.mesh_axes_groups is not False,
            "rgv3_where_same": partition.mesh_axes_groups is None,
            "name_causes": True,
        },
        "sdy-drop-sharding-and-mesh": {"keep_module_sharding_metadata": False},
    }
    passes: list[Pass] = []
    own_before = _OWN_BEFORE if not partition.halo_exchange else _OWN_BEFORE | _EXCHANGES_BEFORE
    for pass_ in _passes_with(options, partition.dump_directory, export):
        passes += _passes_of_text(own_before.get(pass_.name, ""))
        changed = changes.get(pass_.name)
        passes.append(replace(pass_, **changed) if changed else pass_)
        if pass_.name == "sdy-insert-explicit-reshards":
            options_text = {"replicate": format_value(partition.replicate_unsupported)}
            passes.append(make_pass(pass_class("pyshardy-make-partitionable"), options_text))
    return passes


def _passes_with(options: PropagateOptions, dump_directory: str, export: ExportOptions) -> list[Pass]:
    propagate = _propagate_pass(options)
    steps = _propagation_steps(options.dedup_functions_fully, options.explicit_gather_scatter_batching, export)
    if options.view in _VIEWS:
        steps = [*_VIEWS[options.view], *steps, _RESTORE]
    passes = _passes_of(steps, dump_directory, _FIRST_DUMP)
    return [propagate if pass_.name == "sdy-user-priority-propagate" else pass_ for pass_ in passes]


def _propagate_pass(options: PropagateOptions) -> Pass:
    from pyshardy.passes.propagating.op_priority_propagate import OpPriorityPropagate
    from pyshardy.passes.propagating.user_priority_propagate import UserPriorityPropagate

    cls = UserPriorityPropagate if options.user_priorities else OpPriorityPropagate
    return cls(
        keep_sharding_rules=True,
        module_dump_directory=options.dump_directory,
        module_dump_index=_FIRST_DUMP + 1 if options.dump_directory else 0,
        conservative_propagation=options.conservative,
        trace=options.trace,
        propagation_strategy=options.strategy,
        run_op_priority_propagation=options.op_priorities,
    )


def parse_pipeline(text: str) -> list[Pass]:
    """The passes of a textual pipeline.

    >>> [pass_.name for pass_ in parse_pipeline("builtin.module(symbol-dce,func.func(sdy-drop-sharding-rules))")]
    ['symbol-dce', 'sdy-drop-sharding-rules']
    """
    passes: list[Pass] = []
    position, nest, text = 0, list[str](), text.rstrip()
    while position < len(text):
        start = position
        position, name = _expect_name(text, position)
        if name in _INSIDE:
            if tuple(nest) not in _INSIDE[name]:
                raise _error(text, start, f"no {name} inside {nest[-1]}")
            position = _expect(text, position, "(")
            nest.append(name)
            if len(nest) > 1 or _next(text, position) != ")":
                continue
        else:
            position, options = _parse_options(text, position)
            found = named_passes(name, options)
            if tuple(nest) in _ON_FUNCTIONS and any(map(_needs_module, found)):
                raise _error(text, start, f"a pass on functions inside {nest[-1]}; {name} runs on the module")
            passes.extend(found)
        while nest and _next(text, position) == ")":
            position = _expect(text, position, ")")
            nest.pop()
        if position < len(text):
            position = _expect(text, position, ",")
            if position == len(text):
                raise _error(text, position, "the name of a pass")
    if nest:
        raise _error(text, position, "')'")
    return passes


def _needs_module(pass_: Pass) -> bool:
    return pass_.anchor is Anchor.MODULE and pass_.name not in _ON_ANYTHING


def named_passes(name: str, options: dict[str, str]) -> list[Pass]:
    """The pass, or the passes of the pipeline, of this name.

    Raises:
        UsageError: There is no such pass or pipeline, or it has no such option.
    """
    if name in PIPELINES:
        return PIPELINES[name](dict(options))
    return [make_pass(pass_class(name), options)]


def is_pass_or_pipeline(name: str) -> bool:
    """Whether there is a pass or pipeline of this name."""
    return name in PASSES or name in PIPELINES


def _parse_options(text: str, position: int) -> tuple[int, dict[str, str]]:
    if _next(text, position) != "{":
        return position, {}
    start = text.index("{", position)
    end, depth = start, 0
    while end < len(text):
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        if depth == 0:
            return end + 1, parse_option_text(text[start + 1 : end])
        end += 1
    raise _error(text, position, "'}' behind the options")


def parse_option_text(text: str) -> dict[str, str]:
    """`name=value` pairs separated by white space, as MLIR reads them.

    A value with white space stands in braces, which hold a list, or in quotes; a name alone is a flag that is set.
    Of several values of one option the last counts, unless it is a list.

    >>> parse_option_text("a=1 b={x, y} c a=2")
    {'a': '2', 'b': 'x,y', 'c': 'true'}
    >>> parse_option_text("enable-patterns=x enable-patterns=y,z")
    {'enable-patterns': 'x,y,z'}
    """
    found = {}
    for pair in _split_options(text):
        if pair.startswith("{") and pair.endswith("}"):
            found.update(parse_option_text(pair[1:-1]))
            continue
        name, equals, value = pair.partition("=")
        if not name:
            raise UsageError("reading pass options", got=f"'{pair}'", needed="name=value")
        text = _option_value(value) if equals else "true"
        found[name] = f"{found[name]},{text}" if name in found and name in _LISTS else text
    return found


def _split_options(text: str) -> Iterator[str]:
    """The parts of a text between white space that stands neither in braces nor in quotes."""
    part, quote, depth = "", "", 0
    for character in text:
        if character.isspace() and not quote and depth <= 0:
            if part:
                yield part
            part = ""
            continue
        part += character
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        else:
            depth += {"{": 1, "}": -1}.get(character, 0)
    if part:
        yield part


def _option_value(text: str) -> str:
    """A value without the quotes or braces around it; the elements of a list in braces without white space."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].strip()
    if text.startswith("{"):
        return ",".join(part.strip("{} \t\n") for part in text.split(","))
    return text


def _next(text: str, position: int) -> str:
    return text[position:].lstrip()[:1]


def _expect(text: str, position: int, token: str) -> int:
    match = _TOKEN.match(text, position)
    if match is None or match.group(2) != token:
        raise _error(text, position, f"'{token}'")
    return match.end()


def _expect_name(text: str, position: int) -> tuple[int, str]:
    match = _TOKEN.match(text, position)
    if match is None or not match.group(1):
        raise _error(text, position, "the name of a pass")
    return match.end(), match.group(1)


def _error(text: str, position: int, needed: str) -> NotationError:
    return NotationError("reading a pass pipeline", text=text, position=position, needed=needed)
