"""The reference that comes from the package itself: the public API, the options of every command, messages of errors.

A page says ``{public-api}``, ``{commands}`` or ``{error-messages}`` where it wants them. What is exported, added to a
parser or raised is on the site without a change of any page.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.util.nodes import nested_parse_with_titles

from site_parts.listing import api_lines, command_lines
from site_parts.raised import message_lines

# In two strings, because the test of citations reads this file too.
_SOURCE = re.compile(r"^(\s*)" "Source" r": docs/([\w/-]+)\.md#([\w-]+)$")
_LETTER_BEHIND_CODE = re.compile(r"(`[^`]+`)(?=\w)")


class PublicApi(Directive):
    """``{public-api}``: what `pyshardy` exports."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return parsed(self, list(api_lines()))


class Commands(Directive):
    """``{commands}``: the commands and their arguments."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return parsed(self, list(command_lines()))


class ErrorMessages(Directive):
    """``{error-messages}``: what errors say, by class."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        return parsed(self, list(message_lines()))


def parsed(directive: Directive, lines: list[str]) -> list[nodes.Node]:
    """What the lines become on the page, with their sections."""
    node = nodes.section()
    node.document = directive.state.document
    nested_parse_with_titles(directive.state, StringList(lines, source="the package"), node)
    return node.children


def adapt_docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Let the lines "Source: ..." of docstrings lead to the page, and let letters stand behind code, as in Markdown."""
    for index, line in enumerate(lines):
        lines[index] = _LETTER_BEHIND_CODE.sub(r"\1\\ ", line)
        if found := _SOURCE.match(line):
            lines[index] = f"{found[1]}See :doc:`/{found[2]}`, {found[3].replace('-', ' ')}."


def setup(app: Any) -> dict[str, Any]:
    """Give Sphinx the directives."""
    app.add_directive("public-api", PublicApi)
    app.add_directive("commands", Commands)
    app.add_directive("error-messages", ErrorMessages)
    app.connect("autodoc-process-docstring", adapt_docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
