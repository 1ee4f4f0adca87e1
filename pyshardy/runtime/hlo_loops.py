"""The number of rounds of a loop in the text of compiled HLO.

XLA for CPUs and GPUs writes it beside the loop. XLA for TPUs does not: there the counter is read from the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

Computations = Mapping[str, Sequence[str]]
"""The instructions of every computation by its name; the entry computation is named "ENTRY"."""
_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_INSTRUCTION = re.compile(r"^  (ROOT )?%([\w.-]+) = (?:\(.*?\)|\S+) ([a-z][\w-]*)\((.*?)\)(.*)$")
_NAME = re.compile(r"%([\w.-]+)")
_COMMENT = re.compile(r"/\*.*?\*/")
_SAME = ("copy", "bitcast")


class _Instructions(dict[str, tuple[str, str, str]]):
    """The instructions of a computation by name: the op, what is in its brackets, and the rest; "" is the root."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        for line in lines:
            match = _INSTRUCTION.match(_COMMENT.sub("", line))
            if match is not None:
                self[match[2]] = match[3], match[4], match[5]
                if match[1]:
                    self[""] = self[match[2]]

    def constant(self, name: str) -> int | None:
        """The whole number that an instruction gives; None if it is not known to be one."""
        op, inside, _ = self.get(name, ("", "", ""))
        if op in _SAME:
            return self.constant(_NAME.findall(inside)[0])
        return int(inside) if op == "constant" and re.fullmatch(r"-?\d+", inside) else None

    def element(self, name: str) -> int | None:
        """The place in the only argument that an instruction reads; None if it is another instruction."""
        op, _, rest = self.get(name, ("", "", ""))
        match = re.search(r"index=(\d+)", rest)
        return int(match[1]) if op == "get-tuple-element" and match is not None else None

    def offset(self, name: str, place: int) -> int | None:
        """The number that an instruction adds to the element of the argument at a place; None if that is unknown."""
        if self.element(name) == place:
            return 0
        op, inside, _ = self.get(name, ("", "", ""))
        operands = _NAME.findall(inside)
        if op in _SAME:
            return self.offset(operands[0], place)
        if op != "add":
            return None
        for one, other in (operands, operands[::-1]):
            more = self.constant(other)
            if more is not None:
                found = self.offset(one, place)
                return None if found is None else found + more
        return None


def rounds_of(computations: Computations, caller: str, rest: str) -> int | None:
    """The number of rounds of a loop; None if it is unknown.

    Args:
        computations: The instructions of all computations.
        caller: The name of the computation that the loop is in.
        rest: The text of the loop from its operand on.

    >>> text = {
    ...     "ENTRY": ["  %c = u32[] constant(0)", "  %t = (f32[8], u32[]) tuple(%p, %c)"],
    ...     "cond": ["  %n = u32[] constant(4)", "  %i = u32[] get-tuple-element(%q), index=1",
    ...              "  ROOT %l = pred[] compare(%i, %n), direction=LT"],
    ...     "body": ["  %s = u32[] constant(2)", "  %i = u32[] get-tuple-element(%q), index=1",
    ...              "  %a = u32[] add(%i, %s)", "  ROOT %r = (f32[8], u32[]) tuple(%x, %a)"],
    ... }
    >>> rounds_of(text, "ENTRY", "%t), condition=%cond, body=%body")
    2
    """
    known = _TRIP_COUNT.search(rest)
    if known is not None:
        return int(known[1])
    roles = dict(re.findall(r"(condition|body)=%([\w.-]+)", rest))
    condition, body = (_Instructions(computations.get(roles.get(role, ""), ())) for role in ("condition", "body"))
    around = _Instructions(computations.get(caller, ()))
    op, inside, direction = condition.get("", ("", "", ""))
    operands = _NAME.findall(inside)
    if op != "compare" or "direction=LT" not in direction or len(operands) != 2:
        return None
    place, end = condition.element(operands[0]), condition.constant(operands[1])
    if place is None or end is None:
        return None
    start = _at(around.get(_NAME.findall(rest)[0]), place)
    following = _at(body.get(""), place)
    first = None if start is None else around.constant(start)
    step = None if following is None else body.offset(following, place)
    return None if first is None or not step or step < 0 else max(0, -(-(end - first) // step))


def _at(instruction: tuple[str, str, str] | None, place: int) -> str | None:
    """The name of the operand of a tuple at a place; None if the instruction makes no tuple."""
    if instruction is None or instruction[0] != "tuple":
        return None
    operands = _NAME.findall(instruction[1])
    return operands[place] if place < len(operands) else None
