"""What `pyshardy show` says of dimensions that axes do not divide."""

from __future__ import annotations

import json

import pytest

from .command_line import Cli
from .opt_command_line import Put

NOTE = (
    "note: dimension 1 of {} is {}: its {} elements do not divide evenly by {}, and inputs and outputs have even shards"
)


def constrained(size: int, axes: str, count: int = 1, given: str = "") -> str:
    """A program whose results are constrained on the second dimension."""
    type = f"tensor<8x{size}xf32>"
    lines = [
        f"  %{at} = sdy.sharding_constraint %x{at} <@mesh, [{{}}, {{{axes}}}]> : {type} loc(#user)"
        for at in range(count)
    ]
    args = ", ".join(f"%x{at}: {type} {given}" for at in range(count))
    values, types = (", ".join(one) for one in ([f"%{at}" for at in range(count)], [type] * count))
    return (
        'sdy.mesh @mesh = <["data"=4, "model"=2]>\n#user = loc("net.py":3:4)\n'
        f"func.func @main({args}) -> ({types}) {{\n" + "\n".join(lines) + f"\n  return {values} : {types}\n}}\n"
    )


def notes(cli: Cli, path: str, *options: str) -> list[str]:
    """The notes that `show` ends with, each in one line."""
    found = cli("show", path, *options)
    assert (found.status, found.err) == (0, "")
    said = found.out.partition("\nnote: ")
    told = said[2].partition("\n\nnext: ")[0]
    return [] if not said[1] else ("note: " + told).replace("\n  ", " ").splitlines()


@pytest.mark.parametrize(
    ("size", "axes", "kept", "by"),
    [
        (7, '"data"', "whole", "data"),
        (6, '"data"', 'split only along "data":(1)2', "data"),
        (12, '"data", "model"', "split only along data", "data and model"),
        (7, '"data", "model"', "whole", "data and model"),
    ],
)
def test_a_constraint_that_does_not_divide(size: int, axes: str, kept: str, by: str, cli: Cli, put: Put) -> None:
    expected = [NOTE.format(name, kept, size, by) for name in ("arg0", "result")]
    assert notes(cli, put(constrained(size, axes))) == expected


def test_what_divides_is_no_surprise(cli: Cli, put: Put) -> None:
    assert notes(cli, put(constrained(8, '"data", "model"'))) == []


def test_of_an_annotation_a_warning_says_it(cli: Cli, put: Put) -> None:
    given = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}'
    path = put(constrained(7, '"data"', given=given))
    assert notes(cli, path) == [NOTE.format("result", "whole", 7, "data")]
    assert "warning: input arg0 is split less than annotated" in cli("show", path).out


def test_equal_names_share_a_note(cli: Cli, put: Put) -> None:
    assert notes(cli, put(constrained(7, '"data"', 12))) == [
        NOTE.format(name, "whole", 7, "data") for name in ("arg0..11", "result[0..11]")
    ]


def test_json_has_the_axes(cli: Cli, put: Put) -> None:
    data = json.loads(cli("show", put(constrained(6, '"data"')), "--json").out)
    data_axis, part = ({"name": "data", "pre_size": 1, "size": size} for size in (None, 2))
    expected = [{"dimension": 1, "wanted": [data_axis], "kept": [part]}]
    assert [row["undivided"] for row in (*data["inputs"], *data["outputs"])] == [expected, expected]
