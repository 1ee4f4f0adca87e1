"""Laws of the notation: reading is the inverse of printing, and spacing, comments and escapes do not matter."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import (
    format_sharding_list,
    parse_axis,
    parse_dim,
    parse_mesh,
    parse_sharding,
    parse_sharding_list,
)
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.text import format_symbol, quote, unquote
from pyshardy.errors import NotationError

from .strategies import axis_refs, dim_shardings, meshes, names, on_a_mesh, tensor_shardings

NAMED_MESHES = meshes(axis_names=names)
PARSERS = (parse_mesh, parse_axis, parse_dim, parse_sharding, parse_sharding_list)
TOKEN = re.compile(r'@?"[^"]*"|@[\w$.]+|\w+|.', re.ASCII)
spaces = st.sampled_from(("", " ", "\n", "\t ", " // a comment\n", "\r\n"))


@st.composite
def _shardings(draw: st.DrawFn) -> TensorSharding:
    """A sharding over a mesh of any names, given by name or inlined."""
    mesh = draw(NAMED_MESHES)
    return draw(tensor_shardings(mesh, mesh_name=draw(names.filter(len) | st.just(mesh))))


@pytest.mark.slow
@given(NAMED_MESHES)
def test_meshes(mesh: Mesh) -> None:
    assert parse_mesh(str(mesh)) is parse_mesh(f"#sdy.mesh{mesh}") is mesh


@given(on_a_mesh(axis_refs, meshes(min_axes=1, axis_names=names)))
def test_axes(drawn: tuple[Mesh, AxisRef]) -> None:
    assert parse_axis(str(drawn[1])) is drawn[1]


@given(on_a_mesh(dim_shardings, meshes(min_axes=1, axis_names=names)))
def test_dims(drawn: tuple[Mesh, DimSharding]) -> None:
    assert parse_dim(str(drawn[1])) is drawn[1]


@given(_shardings())
def test_shardings(sharding: TensorSharding) -> None:
    assert parse_sharding(str(sharding)) is parse_sharding(f"#sdy.sharding{sharding}") is sharding


@given(st.lists(_shardings(), max_size=3).map(tuple))
def test_lists_of_shardings(shardings: tuple[TensorSharding, ...]) -> None:
    text = format_sharding_list(shardings)
    assert parse_sharding_list(text) == parse_sharding_list(f"#sdy.sharding_per_value{text}") == shardings


@given(_shardings(), st.data())
def test_spacing_does_not_matter(sharding: TensorSharding, data: st.DataObject) -> None:
    spaced = ""
    for token in TOKEN.findall(str(sharding)):
        spaced += token + ("" if token == " " else data.draw(spaces))
    assert parse_sharding(spaced) is sharding


@given(_shardings())
def test_printing_what_was_read_gives_the_text_up_to_spacing(sharding: TensorSharding) -> None:
    squeezed = re.sub(r'("[^"]*")|\s', lambda found: found.group(1) or "", str(sharding))
    assert re.sub(r'("[^"]*")|\s', lambda found: found.group(1) or "", str(parse_sharding(squeezed))) == squeezed


@given(names)
def test_quoting_and_back(name: str) -> None:
    quoted = quote(name)
    assert unquote(quoted[1:-1]) == name
    assert quoted.isascii() and quoted.isprintable() and quoted.count('"') == 2
    assert unquote("".join(f"\\{byte:02x}" for byte in name.encode())) == name
    assert parse_axis(quoted).name == name


@given(names.filter(len))
def test_symbols(name: str) -> None:
    symbol = format_symbol(name)
    assert parse_sharding(f"<{symbol}, []>").mesh == name
    assert parse_sharding(f"<@{quote(name)}, []>").mesh == name
    plain = set(string.ascii_letters + string.digits + "_$.")
    assert ('"' in symbol) is (not set(name) <= plain or name[0] not in string.ascii_letters + "_")


@given(st.binary(max_size=8))
def test_any_bytes_survive(content: bytes) -> None:
    escaped = '"' + "".join(f"\\{byte:02X}" for byte in content) + '"'
    axis = parse_axis(escaped)
    assert axis.name.encode(errors="surrogateescape") == content
    assert parse_axis(str(axis)) is axis


@given(_shardings(), st.data())
def test_a_spoiled_text_is_read_or_refused_with_a_place(sharding: TensorSharding, data: st.DataObject) -> None:
    text = str(sharding)
    at = data.draw(st.integers(0, len(text)))
    cut = data.draw(st.integers(0, 3))
    spoiled = text[:at] + data.draw(st.text('<>[]{}(),:="@?mp019 x\\', max_size=3)) + text[at + cut :]
    for parse in PARSERS:
        _read_or_refused(parse, spoiled)


def _read_or_refused(parse: Callable[[str], Any], text: str) -> None:
    try:
        value = parse(text)
    except NotationError as error:
        assert 0 <= error.position <= len(text)
        assert " " * (2 + error.position) + "^" in str(error).splitlines()
    else:
        printed = format_sharding_list(value) if isinstance(value, tuple) else str(value)
        assert parse(printed) == value


@pytest.mark.parametrize("parse", PARSERS)
@given(text=st.text(max_size=20))
def test_any_text_is_read_or_refused_with_a_place(parse: Callable[[str], Any], text: str) -> None:
    _read_or_refused(parse, text.replace("\n", " "))
