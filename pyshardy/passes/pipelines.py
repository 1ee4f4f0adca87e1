"""The named pipelines, and reading any pipeline from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import count

from pyshardy.errors import NotationError, UsageError
from pyshardy.passes.base import Pass
from pyshardy.passes.common.save_module import Dump, SaveModule
from pyshardy.passes.exporting.export_options import ExportOptions
from pyshardy.passes.exporting.export_steps import Step, export_steps
from pyshardy.passes.options import BOOLEANS, make_pass, read_options
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import PropagateOptions

_IMPORT: list[Step] = [
    "symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,sdy-propagate-sharding-from-func-to-call,"
    "sdy-constant-or-scalar-splitter,symbol-dce,sdy-manual-axes-cleanup",
    Dump("before_propagation"),
    "sdy-add-data-flow-edges",
]
_CONSTRAINTS_AND_GROUPS = "sdy-apply-sharding-constraints,sdy-sharding-group-import"
_PREPARE = (
    "sdy-flatten-call-graph,symbol-dce,sdy-add-func-data-flow-edges,sdy-apply-sharding-constraints,"
    "sdy-sink-func-data-flow-edges,sdy-sharding-group-import,sdy-import-func-calls,symbol-dce,sdy-pre-order-funcs"
)
_PREPARE_DEDUP = "sdy-add-func-data-flow-edges,sdy-pre-order-funcs"
_PROPAGATE = "sdy-user-priority-propagate{keep-sharding-rules=true}"
_FINISH = "sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph"
_FINISH_DEDUP = "sdy-propagate-to-func-results,sdy-sink-func-data-flow-edges,sdy-unflatten-call-graph"
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
    return _passes_of([*_IMPORT, *dedup])


def _propagation_pipeline(options: dict[str, str]) -> list[Pass]:
    return _passes_of(_propagation_steps(_flag(options, "dedup-functions-fully")))


def _propagation_steps(dedup: bool) -> list[Step]:
    if dedup:
        steps = [*_IMPORT, _CONSTRAINTS_AND_GROUPS, _PREPARE_DEDUP, _PROPAGATE, _FINISH_DEDUP]
    else:
        steps = [*_IMPORT, _PREPARE, _PROPAGATE, _FINISH]
    return [*steps, "symbol-dce,sdy-insert-func-call-reshards", *export_steps(ExportOptions(inline_meshes=False))]


def _export_pipeline(options: dict[str, str]) -> list[Pass]:
    read = read_options(ExportOptions, options)
    steps = list(export_steps(read))
    for step in steps:
        name = step.partition("{")[0] if isinstance(step, str) else ""
        if name and name not in PASSES:
            raise UsageError(
                f"building {ExportOptions.name}",
                got=f"options that need the pass {name}",
                needed="passes that pyshardy has",
                hint="choose an earlier partitioner-stage, or enable-insert-explicit-collectives instead",
            )
    return _passes_of(steps, read.dump_directory)


def _passes_of(steps: Iterable[Step], dump_directory: str = "", first_dump: int = 0) -> list[Pass]:
    """The passes of steps; dumps count from `first_dump` on, and there are none without a folder for them."""
    passes: list[Pass] = []
    numbers = count(first_dump)
    for step in steps:
        if not isinstance(step, Dump):
            passes += parse_pipeline(step)
        elif dump_directory:
            passes.append(SaveModule(dump_directory, next(numbers), step.title))
    return passes


PIPELINES: dict[str, Callable[[dict[str, str]], list[Pass]]] = {
    "sdy-import-pipeline": _import_pipeline,
    "sdy-propagation-pipeline": _propagation_pipeline,
    "sdy-export-pipeline": _export_pipeline,
}

_TOKEN = re.compile(r"\s*(?:([\w.-]+)|([(){},]))")
_ANCHORS = ("builtin.module", "func.func", "any")
"""What passes may be nested in; they nest by themselves, so that these names change nothing."""


def propagation_passes(options: PropagateOptions) -> list[Pass]:
    """The propagation pipeline with options that its textual form does not have.

    With a folder for dumps, it writes the module there before and after propagation and at the end, as
    `01.before_propagation.mlir`, `02.after_propagation.mlir` and `03.after_partitioner_passes.mlir`.
    """
    propagate = _propagate_pass(options)
    passes = _passes_of(_propagation_steps(dedup=False), options.dump_directory, _FIRST_DUMP)
    return [propagate if pass_.name == "sdy-user-priority-propagate" else pass_ for pass_ in passes]


def _propagate_pass(options: PropagateOptions) -> Pass:
    from pyshardy.passes.propagating.op_priority_propagate import OpPriorityPropagate
    from pyshardy.passes.propagating.user_priority_propagate import UserPriorityPropagate

    cls = UserPriorityPropagate if options.user_priorities else OpPriorityPropagate
    return cls(
        keep_sharding_rules=True,
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
    position, depth, text = 0, 0, text.rstrip()
    while position < len(text):
        position, name = _expect_name(text, position)
        if name in _ANCHORS:
            position = _expect(text, position, "(")
            depth += 1
            if depth > 1 or _next(text, position) != ")":
                continue
        else:
            position, options = _parse_options(text, position)
            passes.extend(named_passes(name, options))
        while depth and _next(text, position) == ")":
            position, depth = _expect(text, position, ")"), depth - 1
        if position < len(text):
            position = _expect(text, position, ",")
            if position == len(text):
                raise _error(text, position, "the name of a pass")
    if depth:
        raise _error(text, position, "')'")
    return passes


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

    >>> parse_option_text("a=1 b={x, y} c")
    {'a': '1', 'b': 'x,y', 'c': 'true'}
    """
    found = {}
    for pair in _split_options(text):
        if pair.startswith("{") and pair.endswith("}"):
            found.update(parse_option_text(pair[1:-1]))
            continue
        name, equals, value = pair.partition("=")
        if not name:
            raise UsageError("reading pass options", got=f"'{pair}'", needed="name=value")
        found[name] = _option_value(value) if equals else "true"
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
