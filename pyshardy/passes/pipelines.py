"""The named pipelines, and reading any pipeline from text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pyshardy.errors import NotationError, UsageError
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.export_options import ExportOptions
from pyshardy.passes.export_steps import export_steps
from pyshardy.passes.flow import (
    dedup_import_steps,
    import_steps,
    passes_of,
    textual_propagation_steps,
    xla_view_steps,
)
from pyshardy.passes.options import BOOLEANS, make_pass, read_options
from pyshardy.passes.table import PASSES, pass_class


def _flag(options: dict[str, str], name: str) -> bool:
    text = options.pop(name, "false")
    if text not in BOOLEANS:
        raise UsageError(f"reading the pipeline option {name}", got=f"'{text}'", needed="true or false")
    if options:
        raise UsageError("reading pipeline options", got=f"'{next(iter(options))}'", needed=name)
    return BOOLEANS[text]


def _import_pipeline(options: dict[str, str]) -> list[Pass]:
    dedup = _flag(options, "dedup-functions-fully")
    return passes_of([*import_steps(), *(dedup_import_steps() if dedup else [])])


def _propagation_pipeline(options: dict[str, str]) -> list[Pass]:
    return passes_of(textual_propagation_steps(_flag(options, "dedup-functions-fully")))


def _xla_view_pipeline(options: dict[str, str]) -> list[Pass]:
    if options:
        raise UsageError("reading pipeline options", got=f"'{next(iter(options))}'", needed="none")
    return xla_view_steps()


def _export_pipeline(options: dict[str, str]) -> list[Pass]:
    read = read_options(ExportOptions, options)
    return passes_of(export_steps(read), read.dump_directory)


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
"""The ops that passes may be nested in, each with the op that may be around it."""
_ON_FUNCTIONS = (("func.func",), ("builtin.module", "func.func"), ("builtin.module", "any"), ("any", "func.func"))
_ON_ANYTHING = frozenset(["canonicalize"])
"""Passes on modules that may be nested in functions, with the same result: they handle functions one by one."""
_LISTS = frozenset(["enable-patterns"])
"""Options whose values add up if they are given several times; of other options the last value counts."""


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

    A value with white space needs quotes, or braces if it is a list; a name alone sets a flag. If an option has several
    values, the last one counts, unless it is a list.

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
    """The parts of a text, split at white space outside braces and quotes."""
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
