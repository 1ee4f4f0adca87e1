"""The named pipelines, and reading any pipeline from text."""

from __future__ import annotations

import re
from collections.abc import Callable

from pyshardy.errors import NotationError, UsageError
from pyshardy.passes.base import Pass
from pyshardy.passes.options import BOOLEANS, make_pass
from pyshardy.passes.table import PASSES, pass_class
from pyshardy.propagation.options import PropagateOptions

IMPORT = (
    "symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,sdy-propagate-sharding-from-func-to-call,"
    "sdy-constant-or-scalar-splitter,symbol-dce,sdy-manual-axes-cleanup,sdy-add-data-flow-edges"
)
_CONSTRAINTS_AND_GROUPS = "sdy-apply-sharding-constraints,sdy-sharding-group-import"
_PREPARE = (
    "sdy-flatten-call-graph,symbol-dce,sdy-add-func-data-flow-edges,sdy-apply-sharding-constraints,"
    "sdy-sink-func-data-flow-edges,sdy-sharding-group-import,sdy-import-func-calls,symbol-dce,sdy-pre-order-funcs"
)
_PREPARE_DEDUP = "sdy-add-func-data-flow-edges,sdy-pre-order-funcs"
_PROPAGATE = "sdy-user-priority-propagate{keep-sharding-rules=true}"
_FINISH = "sdy-export-named-computations,sdy-propagate-to-func-results,sdy-unflatten-call-graph"
_FINISH_DEDUP = "sdy-propagate-to-func-results,sdy-sink-func-data-flow-edges,sdy-unflatten-call-graph"
_EXPORT = (
    "sdy-constant-or-scalar-merger,sdy-sink-data-flow-edges,sdy-remove-sharding-groups,"
    "sdy-sharding-constraint-to-reshard,sdy-update-non-divisible-input-output-shardings,"
    "sdy-remove-sub-axes-in-input-output-shardings,sdy-close-shardings,sdy-verify-unreduced-axes,"
    "sdy-insert-explicit-reshards,canonicalize{enable-patterns=sdy-collective top-down=false},sdy-drop-sharding-rules"
)


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.pop(name, "false")
    if text not in BOOLEANS:
        raise UsageError(f"reading the pipeline option {name}", got=f"'{text}'", needed="true or false")
    if options:
        raise UsageError("reading pipeline options", got=f"'{next(iter(options))}'", needed=name)
    return BOOLEANS[text]


def _import_pipeline(options: dict[str, str]) -> str:
    return f"{IMPORT},{_CONSTRAINTS_AND_GROUPS}" if _flag(options, "dedup-functions-fully") else IMPORT


def _propagation_pipeline(options: dict[str, str]) -> str:
    if _flag(options, "dedup-functions-fully"):
        parts = [IMPORT, _CONSTRAINTS_AND_GROUPS, _PREPARE_DEDUP, _PROPAGATE, _FINISH_DEDUP]
    else:
        parts = [IMPORT, _PREPARE, _PROPAGATE, _FINISH]
    return ",".join((*parts, "symbol-dce,sdy-insert-func-call-reshards", _EXPORT))


PIPELINES: dict[str, Callable[[dict[str, str]], str]] = {
    "sdy-import-pipeline": _import_pipeline,
    "sdy-propagation-pipeline": _propagation_pipeline,
}

_TOKEN = re.compile(r"\s*(?:([\w.-]+)|([(){},]))")


def propagation_passes(options: PropagateOptions) -> list[Pass]:
    """The propagation pipeline with options that its textual form does not have."""
    propagate = _propagate_pass(options)
    passes = named_passes("sdy-propagation-pipeline", {})
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
        if name in ("builtin.module", "func.func"):
            position = _expect(text, position, "(")
            depth += 1
            continue
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
        return parse_pipeline(PIPELINES[name](dict(options)))
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
    """`name=value` pairs separated by white space.

    >>> parse_option_text("a=1 b={x,y}")
    {'a': '1', 'b': 'x,y'}
    """
    found = {}
    for pair in text.split():
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError("reading pass options", got=f"'{pair}'", needed="name=value")
        found[name] = value.strip("{}")
    return found


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
