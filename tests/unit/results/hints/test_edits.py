"""Other annotations, as they are tried."""

from __future__ import annotations

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.frontend.interface import InterfaceTensor
from pyshardy.results.hints.edits import AnnotationEdit, spec_text


def test_an_edit_knows_what_it_annotates() -> None:
    whole = parse_sharding("<@mesh, [{}]>")
    assert (AnnotationEdit(True, (0,), whole).kind, AnnotationEdit(False, (0,), whole).kind) == (
        "arg_attrs",
        "res_attrs",
    )


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        (None, "P()"),
        ('<@m, [{"a"}, {}]>', "P('a')"),
        ('<@m, [{"a", "b"}, {"c"}]>', "P(('a', 'b'), 'c')"),
        ('<@m, [{"a":(1)2}, {}]>', '<@m, [{"a":(1)2}, {}]>'),
    ],
)
def test_annotations_are_written_as_jax_has_them(sharding: str | None, expected: str) -> None:
    tensor = InterfaceTensor("x", 0, (8, 8), "f32", None if sharding is None else parse_sharding(sharding))
    assert spec_text(tensor) == expected
