from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import (
    format_sharding_list,
    parse_axis,
    parse_dim,
    parse_mesh,
    parse_sharding,
    parse_sharding_list,
)
from pyshardy.core.scanner import Scanner
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.errors import InvalidShardingError, NotationError


def _of_list(text: str) -> str:
    return format_sharding_list(parse_sharding_list(text))


@pytest.mark.parametrize(
    ("parse", "text", "printed"),
    [
        (parse_mesh, "<[]>", "<[]>"),
        (parse_mesh, '#sdy.mesh<["x"=2]>', '<["x"=2]>'),
        (parse_mesh, ' #sdy.mesh < [ "x" = 2 , "y" = 4 ] > ', '<["x"=2, "y"=4]>'),
        (parse_mesh, '<["x"=2], device_ids=[1, 0]>', '<["x"=2], device_ids=[1, 0]>'),
        (parse_mesh, '<["x"=2],device_ids = [ 0,1 ]>', '<["x"=2]>'),
        (parse_mesh, "<[], device_ids=[7]>", "<[], device_ids=[7]>"),
        (parse_mesh, "<[], device_ids=[-0]>", "<[], device_ids=[0]>"),
        (parse_mesh, '<["x"=0x10, "y"=007]>', '<["x"=16, "y"=7]>'),
        (parse_mesh, '<[""=1]>', '<[""=1]>'),
        (parse_mesh, r'<["a\"\\\n\t\41"=2]>', r'<["a\22\\\0A\09A"=2]>'),
        (parse_mesh, '<["é"=2]>', r'<["\C3\A9"=2]>'),
        (parse_mesh, r'<["\C3\A9\FF"=2]>', r'<["\C3\A9\FF"=2]>'),
        (parse_mesh, '<["// no comment"=2]>', '<["// no comment"=2]>'),
        (parse_mesh, '<[ // the axes\n"x"=2]\t\r\n> // the end', '<["x"=2]>'),
        (parse_mesh, '<["x"=9223372036854775807]>', '<["x"=9223372036854775807]>'),
        (parse_axis, '"x"', '"x"'),
        (parse_axis, ' "x" : ( 2 ) 4 ', '"x":(2)4'),
        (parse_axis, '"x":(0x2)0x04', '"x":(2)4'),
        (parse_dim, "{}", "{}"),
        (parse_dim, "{ ? }", "{?}"),
        (parse_dim, '{"x","y":(1)2,?}p12', '{"x", "y":(1)2, ?}p12'),
        (parse_dim, '{"x"} // first\n p0', '{"x"}p0'),
        (parse_dim, "{?}p9223372036854775807", "{?}p9223372036854775807"),
        (parse_sharding, "<@m, []>", "<@m, []>"),
        (parse_sharding, '#sdy.sharding<@m, [{"x"}, {?}p1]>', '<@m, [{"x"}, {?}p1]>'),
        (parse_sharding, '<@"m", []>', "<@m, []>"),
        (parse_sharding, r'<@"a\20\C3\A9", []>', r'<@"a \C3\A9", []>'),
        (parse_sharding, '< mesh < ["x"=2] > , [ {"x"} ] >', '<mesh<["x"=2]>, [{"x"}]>'),
        (parse_sharding, "<mesh<[], device_ids=[3]>, []>", "<mesh<[], device_ids=[3]>, []>"),
        (parse_sharding, '<@m, [], replicated={"x", "y":(1)2}>', '<@m, [], replicated={"x", "y":(1)2}>'),
        (parse_sharding, '<@m, [], unreduced={"x"}>', '<@m, [], unreduced={"x"}>'),
        (parse_sharding, '<@m, [], unreduced{"x"}>', '<@m, [], unreduced={"x"}>'),
        (parse_sharding, '<@m, [], unreduced=sum{"x"}>', '<@m, [], unreduced={"x"}>'),
        (parse_sharding, '<@m, [], unreduced = max { "x" } >', '<@m, [], unreduced=max{"x"}>'),
        (
            parse_sharding,
            '<@m, [], unreduced=min{"x"}, replicated={"y"}>',
            '<@m, [], replicated={"y"}, unreduced=min{"x"}>',
        ),
        (_of_list, "<[]>", "<[]>"),
        (_of_list, '#sdy.sharding_per_value<[<@m, [{"x"}]>,<@n,[]>]>', '<[<@m, [{"x"}]>, <@n, []>]>'),
    ],
)
def test_reading(parse: Callable[[str], Any], text: str, printed: str) -> None:
    assert str(parse(text)) == printed
    assert str(parse(printed)) == printed


def test_what_was_read() -> None:
    assert parse_mesh('<["x"=2], device_ids=[1, 0]>') is Mesh([("x", 2)], device_ids=[1, 0])
    assert parse_mesh(r'<["\C3\A9"=2]>') is parse_mesh('<["é"=2]>') is Mesh([("é", 2)])
    assert parse_sharding(r'<@"\C3\A9", []>').mesh == "é"
    assert parse_sharding("<mesh<[]>, []>").mesh is Mesh([])
    assert parse_sharding('<@m, [], unreduced=max{"x"}>').reduction is ReductionKind.MAX
    assert parse_sharding_list("<[<@m, []>, <@n, []>]>") == (TensorSharding("m"), TensorSharding("n"))


# What cannot be read; below each text a caret at the place, then what the message says.
MESHES = r"""
["x"=2]
^ got '[', needed '<'
<"x"=2>
 ^ got '"', needed '['
<[x=2]>
  ^ got 'x', needed an axis name in quotes
<["x]>
  ^ got '"', needed an axis name in quotes
<["\q"=2]>
  ^ got '"', needed an axis name in quotes
<["x":2]>
     ^ got ':', needed '='
<["x"=y]>
      ^ got 'y', needed the size of the axis
<["x"=-]>
      ^ got '-', needed the size of the axis
<["x"=٣]>
      ^ got '٣', needed the size of the axis
<["x"=2.5]>
       ^ got '.', needed ']'
<["x"=2 "y"=2]>
        ^ got '"', needed ']'
<["x"=2,]>
        ^ got ']', needed an axis name in quotes
<["x"=2]
        ^ got the end of the text, needed '>'
<["x"=2], >
          ^ got '>', needed 'device_ids'
<["x"=2], device_ids>
                    ^ got '>', needed '='
<["x"=2], device_ids=1>
                     ^ got '1', needed '['
<["x"=2], device_ids=[]>
                      ^ got ']', needed a device id
<["x"=2], device_ids=[1,]>
                        ^ got ']', needed a device id
<["x"=2], device_ids=[1 0]>
                        ^ got '0', needed ']'
<["x"=2]> x
          ^ got 'x', needed the end of the text
<["x"=9223372036854775808]>
      ^ got 9223372036854775808, needed a 64-bit integer
 <["x"=0]>
 ^ got size 0 for axis "x", needed a size of at least 1
<["x"=2, "x"=2]>
^ got axis name "x" twice, needed unique axis names
<[], device_ids=[- 1]>
^ got device id -1, needed ids of at least 0
<[], device_ids=[1, 2]>
^ got 2 device ids without axes, needed axes, or exactly one device id
<["x"=2], device_ids=[0]>
^ got 1 device ids, needed 2, the product of the axis sizes
<["x"=2], device_ids=[0, 2]>
^ got device ids [0, 2], needed a permutation of 0 to 1
"""

AXES = r"""
x
^ got 'x', needed an axis name in quotes
"x":2
    ^ got '2', needed '('
"x":()2
     ^ got ')', needed the pre-size of the sub-axis
"x":(1
      ^ got the end of the text, needed ')'
"x":(1)
       ^ got the end of the text, needed the size of the sub-axis
"x":(0)2
^ got sub-axis pre-size 0, needed at least 1
"x":(1)1
^ got sub-axis size 1, needed greater than 1
"x" "y"
    ^ got '"', needed the end of the text
"""

DIMS = r"""
"x"
^ got '"', needed '{'
{x}
 ^ got 'x', needed an axis name in quotes
{"x",}
     ^ got '}', needed an axis name in quotes
{, ?}
 ^ got ',', needed an axis name in quotes
{"x" ?}
     ^ got '?', needed '}'
{?, "x"}
  ^ got ',', needed '}'
{"x"
    ^ got the end of the text, needed '}'
{"x"}P2
     ^ got P2, needed a priority like p1
{"x"}pmax
     ^ got pmax, needed a priority like p1
{"x"}p
     ^ got p, needed a priority like p1
{"x"}p1.5
     ^ got p1.5, needed a priority like p1
{"x"}p007
     ^ got p007, needed a priority without leading zeros
{"x"}p²
     ^ got p, needed a priority like p1
{"x"}p9223372036854775808
     ^ got p9223372036854775808, needed a 64-bit integer as priority
{"x"} 2
      ^ got '2', needed the end of the text
{}p1
^ got priority 1 on an empty closed dimension, needed an axis, an open dimension, or no priority
{"x", "x"}
^ got axis "x" twice, needed every axis at most once
{"x":(1)2, "x":(2)2}
^ got the consecutive sub-axes "x":(1)2 and "x":(2)2, needed the one sub-axis they make
"""

SHARDINGS = r"""
@m
^ got '@', needed '<'
<m, []>
 ^ got 'm', needed '@' and the name of a mesh, or 'mesh<...>'
<@ m, []>
 ^ got '@', needed '@' and the name of a mesh, or 'mesh<...>'
<@0, []>
 ^ got '@', needed '@' and the name of a mesh, or 'mesh<...>'
<@é, []>
 ^ got '@', needed '@' and the name of a mesh, or 'mesh<...>'
<meshes<[]>, []>
 ^ got 'm', needed '@' and the name of a mesh, or 'mesh<...>'
<mesh[], []>
     ^ got '[', needed '<'
<mesh<["x"=0]>, []>
     ^ got size 0 for axis "x", needed a size of at least 1
<@m::@n, []>
   ^ got ':', needed ','
<@m>
   ^ got '>', needed ','
<@m, {}>
     ^ got '{', needed '['
<@m, [{}, ]>
          ^ got ']', needed '{'
<@m, [{} {}]>
         ^ got '{', needed ']'
<@m, [{}, {}p1]>
          ^ got priority 1 on an empty closed dimension, needed an axis, an open dimension, or no priority
<@m, []
       ^ got the end of the text, needed '>'
<@m, [],>
        ^ got '>', needed 'replicated' or 'unreduced', each at most once
<@m, [], replicateds={"x"}>
         ^ got 'r', needed 'replicated' or 'unreduced', each at most once
<@m, [], replicated={"x"}, replicated={"y"}>
                           ^ got 'r', needed 'replicated' or 'unreduced', each at most once
<@m, [], unreduced={"x"}, unreduced={"y"}>
                          ^ got 'u', needed 'replicated' or 'unreduced', each at most once
<@m, [], replicated{"x"}>
                   ^ got '{', needed '='
<@m, [], replicated="x">
                    ^ got '"', needed '{'
<@m, [], replicated={}>
                     ^ got '}', needed an axis name in quotes
<@m, [], replicated={"x",}>
                         ^ got '}', needed an axis name in quotes
<@m, [], replicated={"x"
                        ^ got the end of the text, needed '}'
<@m, [], unreduced=mean{"x"}>
                   ^ got 'm', needed '{'
<@m, [], unreduced=maximum{"x"}>
                   ^ got 'm', needed '{'
<@m, [], unreduced max{"x"}>
                   ^ got 'm', needed '{'
<@m, [], unreduced=>
                   ^ got '>', needed '{'
#sdy.sharding<@m, [{"x"}, {"x"}]>
             ^ got axis "x" twice, needed every axis at most once
<@m, [{"x"}], unreduced={"x":(1)2}>
^ got "x" and "x":(1)2, needed no reference together with the full axis
<@m, []>>
        ^ got '>', needed the end of the text
"""

LISTS = r"""
[]
^ got '[', needed '<'
<<@m, []>>
 ^ got '<', needed '['
<[<@m, []>,]>
           ^ got ']', needed '<'
<[]
   ^ got the end of the text, needed '>'
<[]>,
    ^ got ',', needed the end of the text
<[<@m, []>, <@m, [{}p1]>]>
                  ^ got priority 1 on an empty closed dimension, needed an axis, an open dimension, or no priority
"""


def _cases(block: str, parse: Callable[[str], Any], doing: str) -> list[Any]:
    lines = block.strip("\n").splitlines()
    return [
        pytest.param(parse, doing, text, pointer, id=text)
        for text, pointer in zip(lines[::2], lines[1::2], strict=True)
    ]


@pytest.mark.parametrize(
    ("parse", "doing", "text", "pointer"),
    [
        *_cases(MESHES, parse_mesh, "reading a mesh"),
        *_cases(AXES, parse_axis, "reading an axis"),
        *_cases(DIMS, parse_dim, "reading a dimension sharding"),
        *_cases(SHARDINGS, parse_sharding, "reading a sharding"),
        *_cases(LISTS, parse_sharding_list, "reading a list of shardings"),
    ],
)
def test_refusals(parse: Callable[[str], Any], doing: str, text: str, pointer: str) -> None:
    indent, _, message = pointer.partition("^ ")
    _check_refusal(parse, doing, text, len(indent), message)


def _check_refusal(parse: Callable[[str], Any], doing: str, text: str, position: int, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse(text)
    assert str(caught.value) == f"{doing}: {message}\n  {text}\n  {' ' * position}^"
    assert (caught.value.text, caught.value.position) == (text, position)


def test_refusals_at_the_end_and_of_white_space() -> None:
    _check_refusal(parse_mesh, "reading a mesh", "", 0, "got the end of the text, needed '<'")
    _check_refusal(parse_mesh, "reading a mesh", '<["x"=2]\f>', 8, r"got '\x0c', needed '>'")


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000, "-" + "9" * 19])
def test_integers_of_any_length_are_refused_with_the_place(digits: str) -> None:
    with pytest.raises(NotationError, match=f"got {digits}, needed a 64-bit integer") as caught:
        parse_mesh(f'<["x"={digits}]>')
    assert caught.value.position == 6


def test_priorities_of_any_length_are_refused() -> None:
    with pytest.raises(NotationError, match="needed a 64-bit integer as priority"):
        parse_dim("{?}p" + "9" * 5000)


def test_the_caret_stands_in_the_line_of_the_mistake() -> None:
    with pytest.raises(NotationError) as caught:
        parse_sharding('<@m, [{"x"}, // rows\n      {"y",}], // columns\n replicated={"z"}>')
    assert str(caught.value) == (
        "reading a sharding: got '}', needed an axis name in quotes\n        {\"y\",}], // columns\n             ^"
    )


def test_a_refused_value_is_the_cause() -> None:
    with pytest.raises(NotationError) as caught:
        parse_axis('"x":(1)1')
    assert isinstance(caught.value.__cause__, InvalidShardingError)


def test_an_error_shows_its_hint_below_the_caret() -> None:
    scanner = Scanner("a b", "reading letters")
    assert scanner.accept("a")
    assert str(scanner.fail("'c'", hint="write c")) == (
        "reading letters: got 'b', needed 'c'\n  a b\n    ^\n  try: write c"
    )


def test_words_are_whole_words() -> None:
    scanner = Scanner("maximum max", "reading words")
    assert not scanner.accept_word("max")
    assert scanner.accept_word("maximum")
    assert scanner.accept_word("max")
    assert scanner.finish(1) == 1


def test_dims_that_look_like_those_printed_are_read_like_all_others() -> None:
    plain = parse_sharding('<@m, [{"x", ?}p1, {}, {"y":(2)4}, {?}]>')
    assert parse_sharding('<@m,[{ "x" ,?} p1 , {} // }]\n, { "y":( 2 )4}, {? }]>') is plain
    braces = parse_sharding(r'<@m, [{"x}, ", ?}, {"]", "y\22"}]>')
    assert [axis.name for dim in braces.dims for axis in dim.axes] == ["x}, ", "]", 'y"']
    assert parse_sharding(str(braces)) is braces


@pytest.mark.parametrize(
    ("text", "position"), [('<@m, [{}, {"x", "x"}]>', 10), ('<@m, [{"x"}, {}p1]>', 13), ("<@m, [{x}]>", 7)]
)
def test_dims_that_look_like_those_printed_are_refused_at_their_place(text: str, position: int) -> None:
    for _ in range(2):  # what was refused is not remembered
        with pytest.raises(NotationError) as caught:
            parse_sharding(text)
        assert caught.value.position == position
