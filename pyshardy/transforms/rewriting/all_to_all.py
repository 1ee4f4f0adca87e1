"""What an `sdy.all_to_all` moves: read from its attribute, and made into one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyshardy.core.notation import Scanner, scan_axis
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.nodes import Op
from pyshardy.reshard.collectives import AllToAllParam


def read_params(op: Op) -> list[AllToAllParam]:
    """What an all-to-all moves."""
    return parse_params(str(op.attrs["params"]))


def parse_params(text: str) -> list[AllToAllParam]:
    """The parameters from their attribute's text.

    >>> [str(param) for param in parse_params('#sdy<all_to_all_param_list[{"a"}: 0->2, {"b", "c"}: 1->3]>')]
    ['{"a"}: 0->2', '{"b", "c"}: 1->3']
    """
    scanner = Scanner(text, "reading what an all-to-all moves")
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
