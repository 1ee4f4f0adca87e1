"""Which functions of a user only constrain what they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.source.constraining import constraining_calls, constrains_alike, is_in_helper


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


LINES = {
    "x = pin(x, 'data', None)": True,
    "x = pin(x, *given)": False,
    "x = pin(x, *COMPUTED)": True,
    "x = rows(x)": True,
    "x = with_logical_constraint(x, names)": True,
    "x = with_sharding_constraint(x, given)": False,
    "x = with_sharding_constraint(x, P(given[0]))": False,
    "x = with_sharding_constraint(x, BY_NAME['rows'])": True,
    "x = with_sharding_constraint(x, P('data'))": True,
    "x = jax.sharding.reshard(x, P('data'))": True,
    "x, y = pin(x, 'data'), pin(y, 'data')": False,
    "x = relu(x, 'data')": False,
}


def test_a_line_that_constrains_to_one_spec(tmp_path: Path) -> None:
    """Also through helpers of another file, by names of dimensions, and by variables of the file."""
    (tmp_path / "common.py").write_text(
        "def pin(x, *axes):\n    return jax.lax.with_sharding_constraint(x, P(*axes))\n"
        "def rows(x):\n    return jax.lax.with_sharding_constraint(x, P('data'))\n"
    )
    file = tmp_path / "model.py"
    head = ["from common import pin, rows", "COMPUTED = make()", "def f(x, y, given):", "    names = ('batch', None)"]
    file.write_text("\n".join([*head, *(f"    {line}" for line in LINES)]))
    found = [constrains_alike((str(file), line, 0)) for line in range(len(head) + 1, len(head) + 1 + len(LINES))]
    assert dict(zip(LINES, found)) == LINES


def test_the_calls_that_constrain(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text("\n".join(f"{line}\n" for line in LINES))
    counts = {line: len(constraining_calls(str(file), 2 * number + 1)) for number, line in enumerate(LINES)}
    of_jax = [line for line in LINES if "constraint(" in line or "reshard(" in line]
    assert [line for line, count in counts.items() if count] == of_jax
