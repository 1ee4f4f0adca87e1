"""The logical axes of arrays in trees; classes like those of flax and haliax stand for these."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from pyshardy.errors import UsageError
from pyshardy.frontend.jax_logical_names import logical_names

ARRAY = np.zeros((4, 8), np.float32)


class Box:
    """Like `nn.LogicallyPartitioned`."""

    def __init__(self, value: Any, names: tuple[str | None, ...]) -> None:
        self.value, self.names = value, names

    def unbox(self) -> Any:
        return self.value


class Variable:
    """Like a variable of nnx."""

    def __init__(self, value: Any, **metadata: Any) -> None:
        self.value, self.metadata = value, metadata

    def get_metadata(self) -> dict[str, Any]:
        return self.metadata

    def has_metadata(self, name: str) -> bool:
        return name in self.metadata


class Axis(NamedTuple):
    name: str
    size: int


class NamedArray:
    """Like a named array of haliax."""

    def __init__(self, array: Any, axes: tuple[Axis, ...]) -> None:
        self.array, self.axes = array, axes


@pytest.mark.parametrize(
    "leaf",
    [
        P("embed", "mlp"),
        ("embed", "mlp"),
        Box(ARRAY, ("embed", "mlp")),
        Variable(ARRAY, out_sharding=("embed", "mlp")),
        Variable(ARRAY, sharding=("embed", "mlp")),
        Variable(ARRAY, out_sharding=P("embed", "mlp"), sharding=None),
        Variable(P("embed", "mlp")),
        NamedArray(ARRAY, (Axis("embed", 4), Axis("mlp", 8))),
    ],
)
def test_names_as_frameworks_have_them(leaf: Any) -> None:
    assert list(logical_names({"params": {"layers": [leaf]}})) == [("params['layers'][0]", ("embed", "mlp"))]


def test_the_layers_of_a_stack_in_maxtext() -> None:
    stacked = Variable(ARRAY, out_sharding=("embed", "mlp"), partition_name="layers", param_scan_axis=1)
    named = Variable(ARRAY, out_sharding=("layers", "mlp"), partition_name="layers", param_scan_axis=1)
    assert list(logical_names({"p": [stacked, named]})) == [
        ("p[0]", ("embed", "layers", "mlp")),
        ("p[1]", ("layers", "mlp")),
    ]


@pytest.mark.parametrize("leaf", [ARRAY, jax.ShapeDtypeStruct((2,), "int32"), P(), Variable(ARRAY), Box(ARRAY, ())])
def test_arrays_without_names(leaf: Any) -> None:
    assert list(logical_names({"x": leaf, "y": None})) == [("x", ())]


@pytest.mark.parametrize(
    ("leaf", "said"),
    [
        (P(("a", "b")), r"got (P|PartitionSpec)\(\('a', 'b'\),?\)(.|\n)*at params\['w'\]"),
        (P("a", "a"), "each name once"),
        (Box(ARRAY, ("a", "b", "a")), r"got \('a', 'b', 'a'\), needed for every dimension"),
        (P(P.UNCONSTRAINED), "the name of one logical axis or None"),
        ("embed", "got a str, needed PartitionSpecs, boxes of linen"),
        (3, "got an int, needed"),
    ],
)
def test_other_leaves_are_refused(leaf: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        list(logical_names({"params": {"w": leaf}}))
