"""A plan as logical axis rules: what each logical axis of a model is split along, and which arrays no rules fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from rich.text import Text

from pyshardy.core.axes import Dims
from pyshardy.core.options import enum_value
from pyshardy.core.spec import format_spec
from pyshardy.core.text import format_bytes
from pyshardy.report.layout import Cell, Column, Table, paragraph
from pyshardy.report.logical_code import Framework
from pyshardy.report.logical_fit import LogicalArrays, LogicalRule, by_rules, by_table, fit, grouped
from pyshardy.report.printing import DEFAULTS, Page, Printable, TableOptions

LOGICAL_RULES_VERSION: Final = 1
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""
_RULE_COLUMNS = (Column("logical axis"), Column("mesh axes", wraps=True))
_MOST_MISFITS = 12
"""The most sentences about inputs that rules do not fit."""


@dataclass(frozen=True, slots=True)
class LogicalMisfit:
    """Inputs to which the rules give another sharding than the plan.

    Attributes:
        arrays: The inputs, their logical axes, and the sharding of the plan.
        given: The mesh axes of each dimension by the rules.
        disagreeing: The logical axes that the plan shards otherwise here; None for dimensions without a logical axis.
        causes: Inputs whose shardings no rules can give together with these; none if no rules give these alone.
    """

    arrays: LogicalArrays
    given: Dims
    disagreeing: tuple[str | None, ...]
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class LogicalRules(Printable):
    """Logical axis rules that give inputs the shardings of a plan, or most of their bytes.

    Attributes:
        rules: The logical axes with their mesh axes. They are read in order, and an array uses a mesh axis once, as in
            flax's linen and in MaxText; if `once`, every logical axis has one rule, as in flax's nnx and in haliax.
        misfits: The inputs to which the rules give another sharding, the largest first.
        arrays: All inputs that have logical axes given, those together that are sharded alike.
        mesh: The name and size of every mesh axis.
        first: The logical axes of inputs that are not updated, such as a batch, whose rules come first where they can:
            activations have such axes too, beside those of weights.
        once: Whether every logical axis has one rule.
        is_most: Whether it is sure that no rules give more bytes the shardings of the plan.
    """

    rules: tuple[LogicalRule, ...]
    misfits: tuple[LogicalMisfit, ...]
    arrays: tuple[LogicalArrays, ...]
    mesh: tuple[tuple[str, int], ...]
    first: tuple[str, ...] = ()
    once: bool = False
    is_most: bool = True

    @property
    def fits(self) -> bool:
        """Whether the rules give all inputs the shardings of the plan."""
        return not self.misfits

    @property
    def bytes(self) -> int:
        """The bytes of all inputs that have logical axes given."""
        return sum(one.bytes for one in self.arrays)

    @property
    def fitting_bytes(self) -> int:
        """The bytes of the inputs to which the rules give the shardings of the plan."""
        return self.bytes - sum(one.arrays.bytes for one in self.misfits)

    @property
    def pairs(self) -> tuple[tuple[str, str | tuple[str, ...] | None], ...]:
        """The rules as flax takes them: `nn.logical_axis_rules(rules.pairs)`."""
        return tuple((name, axes if len(axes) > 1 else axes[0] if axes else None) for name, axes in self.rules)

    def one_per_name(self) -> LogicalRules:
        """Rules in which every logical axis stands once, for flax's nnx and for haliax."""
        return self if self.once else logical_rules(self.arrays, self.mesh, self.first, once=True)

    def code(self, framework: Framework | str) -> str:
        """The rules as text to paste.

        Args:
            framework: "linen" and "nnx" give Python for flax, "haliax" an axis mapping, "maxtext" lines of a YAML
                configuration. For nnx and haliax every logical axis has one rule, as `one_per_name` gives them.

        Raises:
            UsageError: The framework is unknown, or the mesh has an axis that MaxText's does not have.
        """
        chosen = enum_value(Framework, framework, "writing logical axis rules")
        found = self.one_per_name() if chosen.has_table else self
        return chosen.code(found.rules, found.mesh, [_remark(one) for one in found.misfits])

    def to_json(self) -> dict[str, Any]:
        """The rules as JSON-ready data; the keys are the names of the attributes."""
        return {"version": LOGICAL_RULES_VERSION, **asdict(self)}

    def tables(self, options: TableOptions = DEFAULTS) -> Page:
        """The rules, and the inputs that they do not fit, for a `rich` console."""
        return Page(lambda width: _lines(self, width))

    def __repr__(self) -> str:
        return f"<LogicalRules: {len(self.rules)}, {_share(self)}>"


def logical_rules(
    arrays: Iterable[LogicalArrays], mesh: tuple[tuple[str, int], ...], first: Iterable[str] = (), *, once: bool = False
) -> LogicalRules:
    """The logical axis rules that give most bytes their shardings.

    Args:
        arrays: The inputs with their logical axes and shardings.
        mesh: The name and size of every mesh axis.
        first: Logical axes whose rules come first where they can.
        once: Whether every logical axis has one rule.
    """
    ahead = tuple(dict.fromkeys(first))
    groups = grouped(arrays)
    found = fit(groups, once, ahead)
    read = by_table if once else by_rules
    misfits = []
    for number, one in enumerate(groups):
        given = read(one.names, found.rules)
        if given != one.axes:
            causes = tuple(name for cause in found.causes.get(number, ()) for name in groups[cause].inputs)
            misfits.append(LogicalMisfit(one, given, tuple(_disagreeing(one, given)), causes))
    return LogicalRules(found.rules, tuple(misfits), tuple(groups), mesh, ahead, once, found.is_most)


def _disagreeing(one: LogicalArrays, given: Dims) -> Iterator[str | None]:
    for number, name in enumerate(one.names):
        wanted, found = (axes[number] if number < len(axes) else () for axes in (one.axes, given))
        if wanted != found:
            yield name


def _share(found: LogicalRules) -> str:
    if found.fits:
        return "all inputs as in the plan"
    return f"{format_bytes(found.fitting_bytes)} of {format_bytes(found.bytes)} as in the plan"


def _lines(found: LogicalRules, width: int) -> list[Text]:
    how = "every logical axis has one" if found.once else "in order, a mesh axis once in an array"
    lines = paragraph(f"logical axis rules, {how}: {_share(found)}", width, style="bold")
    rows = [(Cell(name), Cell(", ".join(axes) or "whole")) for name, axes in found.rules]
    lines += Table("", _RULE_COLUMNS, rows).lines(width)
    if found.misfits:
        most = "no rules fit more" if found.is_most else "others may fit more: not all were tried"
        lines += [
            Text(),
            *paragraph(f"inputs that the rules shard otherwise than the plan; {most}", width, style="bold"),
        ]
        lines += [line for one in found.misfits[:_MOST_MISFITS] for line in paragraph(_sentence(one), width)]
        more = len(found.misfits) - _MOST_MISFITS
        lines += paragraph(f"{more} more", width) if more > 0 else []
    return lines


def _sentence(one: LogicalMisfit) -> str:
    names = ", ".join(map(str, one.arrays.names)) or "none"
    return f"{_remark(one)}; of its logical axes ({names}), {_why(one)}"


def _remark(one: LogicalMisfit) -> str:
    arrays = one.arrays
    wanted, given = format_spec(arrays.axes), format_spec(one.given)
    return f"{_listed(arrays.inputs)}, {format_bytes(arrays.bytes)}: {wanted} in the plan, {given} by the rules"


def _why(one: LogicalMisfit) -> str:
    """What is in the way of the plan's sharding.

    >>> arrays = LogicalArrays(("w",), ("embed",), (("x",),), 1, 4)
    >>> _why(LogicalMisfit(arrays, (), ("embed",), ("v", "u")))
    'embed cannot have these mesh axes beside v and 1 more'
    """
    names = " and ".join(dict.fromkeys("a dimension without one" if name is None else name for name in one.disagreeing))
    if one.causes:
        return f"{names} cannot have these mesh axes beside {_listed(one.causes)}"
    if None in one.disagreeing:
        return f"{names} cannot have mesh axes"
    return f"{names} cannot have these mesh axes, as an array would have one twice"


def _listed(inputs: tuple[str, ...]) -> str:
    return inputs[0] + (f" and {len(inputs) - 1} more" if len(inputs) > 1 else "")
