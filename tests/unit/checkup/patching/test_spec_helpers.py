"""Specs that functions of the user's make of several arguments."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch

from pyshardy.checkup.patching.specs import SpecChange, spec_patch

LINEN = """\
import flax.linen as nn


def part(rows, columns, init=nn.initializers.lecun_normal()):
    return nn.with_partitioning(init, (rows, columns))


def dense(features, name, rows=None, columns=None):
    return nn.Dense(features, name=name, kernel_init=part(rows, columns))


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        q = dense(64, "q_proj", "fsdp", "model")(x)
        o = dense(64, "o_proj", rows="fsdp")(q)
        return dense(64, "down", "model", "fsdp")(o)
"""


def patched(source: str, *changes: SpecChange) -> str:
    Path("net.py").write_text(source)
    diff = spec_patch(["net.py"], changes)
    return "".join(apply_patch(source.splitlines(keepends=True), diff)) if diff else ""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("weight", "old", "new", "right"),
    [
        ("q_proj", (("fsdp",), ("model",)), (("model",), ("fsdp",)), 'dense(64, "q_proj", "model", "fsdp")(x)'),
        ("down", (("model",), ("fsdp",)), (("model",), ()), 'dense(64, "down", "model", None)(o)'),
        ("o_proj", (("fsdp",), ()), (("model", "fsdp"), ()), 'dense(64, "o_proj", rows=("model", "fsdp"))(q)'),
    ],
)
def test_arguments_that_two_functions_hand_on(
    weight: str, old: tuple[tuple[str, ...], ...], new: tuple[tuple[str, ...], ...], right: str
) -> None:
    text = patched(LINEN, SpecChange(f"params['block_0']['{weight}']['kernel'].value", old, new))
    assert right in text and sum(one != other for one, other in zip(text.split("\n"), LINEN.split("\n"))) == 1


def test_what_a_call_does_not_say_has_no_patch() -> None:
    change = SpecChange("params['block_0']['o_proj']['kernel'].value", (("fsdp",), ()), (("fsdp",), ("model",)))
    assert patched(LINEN, change) == ""


def test_axes_that_are_metadata_of_a_parameter() -> None:
    source = """\
class Sharded(nnx.Param):
    pass


def weight(rngs, shape, *spec):
    return Sharded(jax.random.normal(rngs.params(), shape), spec=spec)


class MoE(nnx.Module):
    def __init__(self, c, rngs):
        self.w_gate = weight(rngs, (c.experts, c.dim, c.ffn), "expert", None, "model")
        self.w_up = weight(rngs, (c.experts, c.dim, c.ffn), "expert", "model", None)
"""
    change = SpecChange("state[0]['moe']['w_up'].value", (("expert",), ("model",)), (("expert",), (), ("model",)))
    assert patched(source, change) == source.replace('"expert", "model", None', '"expert", None, "model"')


def test_a_method_that_is_given_axes() -> None:
    source = """\
class Net:
    def __init__(self):
        self.up = self.linear((8, 16), None, "model")
        self.down = self.linear((16, 8), "model", None)

    def linear(self, shape, rows, columns):
        return array(shape, P(rows, columns))
"""
    text = patched(source, SpecChange("net.down", (("model",),), ((), ("model",))))
    assert text == source.replace('(16, 8), "model", None', '(16, 8), None, "model"')


ROLLOUT = """\
BY_ROW = NamedSharding(mesh, P("x"))
ROLLOUT = NamedSharding(mesh, P("x"))


def rollout(*tail):
    return jax.ShapeDtypeStruct((64, 512, *tail), jnp.float32, sharding=ROLLOUT)


roll = {name: rollout() for name in ("rewards", "dones")}
roll |= {"obs": rollout(16)}
last = jax.ShapeDtypeStruct((512,), jnp.float32, sharding=BY_ROW)
"""


def test_the_spec_of_a_function_is_for_all_that_it_makes() -> None:
    changes = [SpecChange(f"roll['{name}']", (("x",),), ((), ("x",))) for name in ("rewards", "dones", "obs")]
    text = patched(ROLLOUT, *changes)
    assert 'ROLLOUT = NamedSharding(mesh, P(None, "x"))' in text and text.count("None") == 1
    literal = ROLLOUT.replace("sharding=ROLLOUT", 'sharding=NamedSharding(mesh, P("x"))')
    assert 'sharding=NamedSharding(mesh, P(None, "x"))' in patched(literal, *changes)
    assert patched(ROLLOUT, *changes[:2]) == patched(ROLLOUT, changes[0], changes[2]) == ""
    assert patched(ROLLOUT + "other = jax.ShapeDtypeStruct((8,), sharding=ROLLOUT)\n", *changes) == ""
