"""The parameters of an `sdy.all_to_all`, from its attribute and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.core.collectives import AllToAllParam
from pyshardy.core.notation import scan_axis
from pyshardy.core.scanner import Scanner
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op


def read_params(op: Op) -> list[AllToAllParam]:
    """The parameters of an all-to-all."""
    return parse_params(str(op.attrs["params"]))


def parse_params(text: str) -> list[AllToAllParam]:
    """The parameters from the text of their attribute.

    >>> [str(param) for param in parse_params('#sdy<all_to_all_param_list[{"a"}: 0->2, {"b", "c"}: 1->3]>')]
    ['{"a"}: 0->2', '{"b", "c"}: 1->3']
    """
    scanner = Scanner(text, "reading the parameters of an all-to-all")
    scanner.expect("#sdy<all_to_all_param_list")
    scanner.expect("[")
    return scanner.comma_list(lambda: _scan_param(scanner), "]")


def _scan_param(scanner: Scanner) -> AllToAllParam:
    scanner.expect("{")
    axes = tuple(scanner.comma_list(lambda: scan_axis(scanner), "}"))
    scanner.expect(":")
    source = scanner.integer("a dimension")
    scanner.expect("->")
    return AllToAllParam(axes, source, scanner.integer("a dimension"))


def make_params(params: Iterable[AllToAllParam], attrs: AttrTable) -> Any:
    """The attribute that holds the parameters."""
    return attrs.parse(f"#sdy<all_to_all_param_list[{', '.join(map(str, params))}]>")
