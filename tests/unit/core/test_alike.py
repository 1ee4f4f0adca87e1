"""Names that differ in numbers of layers alone."""

from __future__ import annotations

from pyshardy.core.alike import common, general, general_text


def test_names_that_are_alike() -> None:
    assert general("x[12][3]['w1']['b_2']") == "x[*][*]['w1']['b_*']"
    assert general_text("[8] of `x[12]`") == "[8] of `x[*]`"
    assert common(["x[0]['b_2']", "x[0]['b_7']"]) == "x[0]['b_*']"
    assert common(["x[0]"]) == "x[0]"
    assert general("p['h']['3']['w1']") == "p['h']['*']['w1']"
    assert general("p['model.layers.3.w1']") == "p['model.layers.*.w1']"
    assert general("p['w1']['v_5e']") == "p['w1']['v_5e']"
