"""The messages of errors, read from the places in the package that raise them.

A message begins with what was being done and what was needed; both stand in the code, with `...` for what differs from
case to case.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyshardy
from pyshardy import errors

KINDS = frozenset(
    name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, errors.ShardyError)
) | {"PassError"}
"""The classes of errors that users see."""
ANY = "..."
Texts = dict[str, str]


@dataclass(frozen=True, order=True)
class Message:
    """What an error says.

    Attributes:
        doing: What was being done; `...` for what is computed.
        needed: What would have been right; empty if the code does not say, or computes it.
        kind: The class of the error.
    """

    doing: str
    needed: str
    kind: str


def messages() -> list[Message]:
    """All messages whose beginning stands in the code, in the order of the alphabet."""
    found: set[Message] = set()
    for path in sorted(Path(pyshardy.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text())
        found |= set(_messages(tree, _texts(tree.body, {})))
    return sorted(found)


def _messages(node: ast.AST, texts: Texts) -> Iterator[Message]:
    """The messages in a part of the code, where names stand for these texts."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield from _messages(child, _texts(child.body, texts))
            continue
        if isinstance(child, ast.Call) and _name(child.func) in KINDS:
            yield from _message(child, texts)
        yield from _messages(child, texts)


def _message(call: ast.Call, texts: Texts) -> Iterator[Message]:
    kind = _name(call.func)
    arguments = call.args[1:] if kind == "PassError" else call.args  # that one begins with the op
    given = {each.arg: text_of(each.value, texts) for each in call.keywords if each.arg}
    doing = text_of(arguments[0], texts) if arguments else ""
    if doing.strip(". ") and " " in doing:
        yield Message(doing, given.get("needed", ""), kind)


def _texts(body: list[ast.stmt], outer: Texts) -> Texts:
    """What names stand for behind these statements."""
    own = {
        target.id: text_of(node.value, outer)
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return {**outer, **own}


def _name(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def text_of(value: ast.expr, texts: Texts) -> str:
    """A text in the code, with `...` where it is computed."""
    if isinstance(value, ast.Constant):
        return value.value if isinstance(value.value, str) else ""
    if isinstance(value, ast.JoinedStr):
        return re.sub(r"(\.\.\.)+", ANY, "".join(text_of(part, texts) for part in value.values))
    return texts.get(value.id, ANY) if isinstance(value, ast.Name) else ANY


def message_lines() -> Iterator[str]:
    """The messages as tables in Markdown, one for each class of errors."""
    by_class: dict[str, dict[str, list[str]]] = {}
    for message in messages():
        by_class.setdefault(message.kind, {}).setdefault(message.doing, []).append(message.needed)
    for kind, rows in sorted(by_class.items()):
        yield from (f"### {kind}: messages", "", "| it begins with | what is needed |", "|---|---|")
        for doing, needed in rows.items():
            wanted = [each for each in dict.fromkeys(needed) if each.strip(". ")]
            yield f"| {cell(doing)} | {'; '.join(map(cell, wanted))} |"
        yield ""


def cell(text: str) -> str:
    """A text in a cell of a table, as code where it has signs that Markdown would take for its own."""
    text = " ".join(text.split())
    if re.search(r"[|<>*_`\[\]{}@]", text):
        return "``" + text.replace("|", "\\|").replace("`", "'") + "``"
    return text
