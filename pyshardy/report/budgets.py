"""Budgets of a program: the memory and the bytes that it may take, and what it may not do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pyshardy.core.plain_data import check_fields
from pyshardy.core.scopes import scope_path
from pyshardy.core.text import format_bytes, parse_bytes
from pyshardy.costing.traffic import CollectiveRow, Traffic
from pyshardy.errors import UsageError
from pyshardy.report.replications import Replication
from pyshardy.report.specs import format_axis
from pyshardy.source.cells import file_name
from pyshardy.source.places import format_place

_FORBIDDEN = re.compile(r"(?P<kind>[\w*?-]+)(?:\s+over\s+(?P<axis>\S+))?(?:\s+in\s+(?P<where>.+))?")
_DOING = "reading a budget"
_MOST = 4
"""The number of collectives to name of those that a budget forbids."""


@dataclass(frozen=True, slots=True)
class Budgets:
    """What a program may take; empty texts and lists are no limit.

    Attributes:
        max_memory: The peak memory of a device, such as "14GiB".
        max_bytes: The bytes that a device sends per run, such as "2GB".
        no_replication: Whether the compiler may gather no tensor whole.
        no: The collectives that there may not be, such as `all_gather over model in decoder/*`.

    Raises:
        UsageError: A text is not a number of bytes, or does not say which collectives.

    >>> Budgets(max_memory="14GiB").max_memory
    '14GiB'
    >>> Budgets(max_memory="much")
    Traceback (most recent call last):
    pyshardy.errors.UsageError: reading a budget: got max_memory='much', needed bytes as text, like "14GiB"
    """

    max_memory: str = ""
    max_bytes: str = ""
    no_replication: bool = False
    no: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self, _DOING)
        for name in ("max_memory", "max_bytes"):
            given = getattr(self, name)
            if given and parse_bytes(given) is None:
                raise UsageError(_DOING, got=f"{name}={given!r}", needed='bytes as text, like "14GiB"')
        for text in self.no:
            if _FORBIDDEN.fullmatch(text.strip()) is None:
                needed = 'KIND, KIND over AXIS, or KIND over AXIS in SCOPE, like "all_gather over model in decoder/*"'
                raise UsageError(_DOING, got=f"no={text!r}", needed=needed)

    def __bool__(self) -> bool:
        return self != Budgets()

    def and_(self, other: Budgets) -> Budgets:
        """These budgets with others: the limits of the others replace these, and what either forbids is forbidden.

        >>> Budgets("14GiB", no=("all_gather",)).and_(Budgets("16GiB", no=("all_to_all",)))
        Budgets(max_memory='16GiB', max_bytes='', no_replication=False, no=('all_gather', 'all_to_all'))
        """
        return Budgets(
            other.max_memory or self.max_memory,
            other.max_bytes or self.max_bytes,
            other.no_replication or self.no_replication,
            tuple(dict.fromkeys((*self.no, *other.no))),
        )

    def broken(self, peak_bytes: int, traffic: Traffic, replications: Iterable[Replication]) -> Iterator[str]:
        """A sentence for each budget that a program breaks.

        Args:
            peak_bytes: The peak memory of a device.
            traffic: The collectives.
            replications: The tensors that the compiler gathers whole.
        """
        limits = (
            ("peak memory", self.max_memory, peak_bytes, ""),
            ("bytes sent", self.max_bytes, traffic.sent_bytes_per_device, "at least " * traffic.is_lower_bound),
        )
        for what, text, found, sign in limits:
            limit = parse_bytes(text) if text else None
            if limit is not None and found > limit:
                yield f"{what} per device: {sign}{format_bytes(found)}, and {text} are allowed"
        for one in replications if self.no_replication else ():
            yield f"no replication is allowed: {one}"
        for text in self.no:
            rows = [row for row in traffic.collectives if _forbids(text, row)]
            if rows:
                places = list(dict.fromkeys(filter(None, (format_place(row.place, only_name=True) for row in rows))))
                more = f" and {len(places) - _MOST} more lines" if len(places) > _MOST else ""
                at = f" at {', '.join(places[:_MOST])}{more}" if places else ""
                count, sent = sum(row.times for row in rows), sum(row.total_bytes for row in rows)
                yield f"no {text} is allowed: there {'is' if count == 1 else 'are'} {count}{at}, {format_bytes(sent)}"


def _forbids(text: str, row: CollectiveRow) -> bool:
    """Whether a text names a collective: by its kind, an axis, and its scope, file or line."""
    match = _FORBIDDEN.fullmatch(text.strip())
    assert match is not None
    kind, axis, where = match["kind"].replace("-", "_"), match["axis"], match["where"]
    if not fnmatchcase(row.kind, kind):
        return False
    if axis is not None and not any(fnmatchcase(format_axis(one.partition(":")[0]), axis) for one in row.axes or ()):
        return False
    if where is None:
        return True
    place = row.place
    places = [] if place is None else [file_name(place[0]), f"{file_name(place[0])}:{place[1]}"]
    return any(fnmatchcase(one, where.strip()) for one in (scope_path(row.op) or "", *places))
