from __future__ import annotations

import pytest

from pyshardy.errors import NotationError
from pyshardy.rules.notation import parse_rule

BODY = "([i, jk], [k])->([i, j]) {i=6, j=4, k=2}"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            f"<{BODY} need_replication={{i}} permutation={{j}} blocked_propagation={{i}}, custom>",
            f"<{BODY} need_replication={{i}} permutation={{j}} blocked_propagation={{i}}, custom>",
        ),
        (f"#sdy.op_sharding_rule<{BODY}>", f"<{BODY}>"),
        ("<  ( [ i ,jk ],[k] ) -> ( [i,j] ){i = 6,j=4 , k=2} >", f"<{BODY}>"),
        ("<([], [])->([])>", "<([], [])->([])>"),
        ("<([i])->([i]) {i=-4}>", "<([i])->([i]) {i=-4}>"),
        ("<([i])->([i]) {i=0}>", "<([i])->([i]) {i=0}>"),
        (f"<{BODY} reduction={{}}>", f"<{BODY}>"),
        (f"<{BODY} reduction=>", f"<{BODY}>"),
        (f"<{BODY} need_replication={{ij}}>", f"<{BODY} need_replication={{i}}>"),
    ],
)
def test_reading(text: str, printed: str) -> None:
    assert str(parse_rule(text)) == printed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<()->([i]) {i=4}>", r"needed '\['"),
        (f"<{BODY} permutation={{i}} need_replication={{j}}>", "needed '>'"),
        (f"<{BODY} wrong={{i}}>", "needed '>'"),
        (f"<{BODY} reduction{{i}}>", "needed '='"),
        (f"<{BODY}, customs>", "needed '>'"),
        (f"<{BODY}, special>", "needed 'custom'"),
        ("<([i, k])->([i]) {i=4, k=2}>", "the size of factor j; sizes are listed in the order i, j, k"),
        ("<([i, j])->([i]) {ij=4, j=2}>", "the size of factor i"),
        ("<([a])->([a]) {i=4}>", "factors i to z"),
        ("<([z_])->([i]) {i=4}>", "factors i to z"),
        ("<([z_0])->([i]) {i=4}>", "factors i to z"),
        ("<([z_01])->([i]) {i=4}>", "factors i to z"),
        ("<([i,])->([i]) {i=4}>", "no factor"),
        (f"<{BODY} reduction={{l}}>", "factors that have a size"),
        (f"<{BODY} need_replication={{j, i}}>", "in order, each once"),
        (f"<{BODY} need_replication={{i, i}}>", "in order, each once"),
        (f"<{BODY} need_replication={{i}} permutation={{i}}>", "at most one set"),
        (f"<{BODY} reduction={{i}}>", "a reduction factor in result 0"),
        (f"<{BODY}> x", "the end"),
    ],
)
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        parse_rule(text)
