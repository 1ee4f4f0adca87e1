"""Which functions of a user only constrain what they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.source.syntax import is_in_helper


@pytest.mark.parametrize(
    "code, is_helper",
    [
        ("def put(x, *axes):\n    return jax.lax.with_sharding_constraint(x, P(*axes))\n", True),
        ("def put(x, mesh):\n    s = on(mesh)\n    return with_sharding_constraint(x, s)\n", True),
        ("def layer(x, w):\n    y = x @ w\n    return with_sharding_constraint(y, P('data'))\n", False),
        ("def layer(x, w):\n    x = x @ w\n    return with_sharding_constraint(x, P('data'))\n", False),
        ("def layer(x, w):\n    return with_sharding_constraint(x @ w, P('data'))\n", False),
    ],
)
def test_a_helper_constrains_what_it_is_given(code: str, is_helper: bool, tmp_path: Path) -> None:
    """The line of a constraint in a layer is its own, that in a helper the call of the helper."""
    file = tmp_path / "model.py"
    file.write_text(code)
    assert is_in_helper((str(file), 2, 4)) == is_helper
