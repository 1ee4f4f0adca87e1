"""Rules of a plan: patterns of names with specs."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import PartitionSpec as P

from pyshardy.report.rules import NamedSpec, PlanRule, code_of, rules_of

DATA, MODEL = (("data",),), ((), ("model",))
AXES = st.sampled_from([(), DATA, MODEL])
TREES = st.dictionaries(
    st.builds(
        lambda head, keys: head + "".join(f"['{key}']" if key != "*" else "[*]" for key in keys),
        st.sampled_from(["params", "state", "x"]),
        st.lists(st.sampled_from(["w", "b", "layers", "*", "norm"]), max_size=4),
    ),
    AXES,
    max_size=12,
)


def decided(rules: tuple[PlanRule, ...], name: str) -> Any:
    return next(rule.axes for rule in rules if rule.fits(name))


def without_stars(name: str) -> str:
    return re.sub(r"\[\*\]", "[7]", name)


@given(TREES)
def test_the_rules_give_every_input_its_sharding(specs: dict[str, Any]) -> None:
    rules = rules_of(NamedSpec(name, axes, 1) for name, axes in specs.items())
    assert all(decided(rules, name) == axes for name, axes in specs.items())
    assert sum(rule.count for rule in rules) == len(specs)
    assert len(rules) <= 1 + len(specs)


def test_another_rule_is_noticed() -> None:
    rules = rules_of([NamedSpec("params['w']", DATA, 1), NamedSpec("params['b']", (), 1)])
    assert decided(rules, "params['w']") == DATA
    assert decided((PlanRule("*['w']", MODEL, 1), *rules[1:]), "params['w']") != DATA


def test_a_parameter_and_its_state_are_one_rule() -> None:
    names = ["params", "state['mean']", "state['square']"]
    specs = [NamedSpec(f"{name}['layers'][*]['{leaf}']", axes, 32) for name in names
             for leaf, axes in (("w1", MODEL), ("w2", (("model",), ())), ("norm", ((),)))]  # fmt: skip
    rules = rules_of([*specs, NamedSpec("tokens", DATA, 1)])
    assert [(rule.pattern, rule.count) for rule in rules] == [
        ("*['w1']", 96), ("*['w2']", 96), ("tokens", 1), ("*", 96)
    ]  # fmt: skip


def test_an_end_is_as_long_as_it_has_to_be() -> None:
    specs = [NamedSpec("params['attn']['w']", DATA, 1), NamedSpec("params['mlp']['w']", MODEL, 1)]
    assert [rule.pattern for rule in rules_of(specs)] == ["*['attn']['w']", "*['mlp']['w']", "*"]
    dotted = [NamedSpec("model.layers[*].attn.kernel", DATA, 2), NamedSpec("model.layers[*].mlp.kernel", (), 2)]
    assert [rule.pattern for rule in rules_of(dotted)] == ["*.attn.kernel", "*"]


def test_state_that_is_sharded_further_is_one_rule_after_its_parameter() -> None:
    specs = [NamedSpec(f"{name}['layers'][*]['w']", axes, 32) for name, axes in (
        ("params", ()), ("mean", MODEL), ("square", MODEL))]  # fmt: skip
    specs += [
        NamedSpec("params['head']", DATA, 1),
        NamedSpec("mean['head']", MODEL, 1),
        NamedSpec("square['head']", MODEL, 1),
    ]
    assert [(rule.pattern, rule.axes, rule.count) for rule in rules_of(specs)] == [
        ("params['layers'][*]['w']", (), 32), ("params['head']", DATA, 1),
        ("*['w']", MODEL, 64), ("*['head']", MODEL, 2), ("*", (), 0),
    ]  # fmt: skip


def test_all_of_an_argument_are_one_rule_where_its_state_is_sharded_further() -> None:
    roles = [f"['w{number}']" for number in range(12)]
    specs = [NamedSpec(f"params{role}", (), 32, (32, number)) for number, role in enumerate(roles)]
    specs += [
        NamedSpec(f"{state}{role}", ((), ("model",)), 32, (32, number))
        for state in ("mean", "square")
        for number, role in enumerate(roles)
    ]
    rules = rules_of([*specs, NamedSpec("x", (("data",),), 1, (8,))])
    assert [rule.pattern for rule in rules] == ["x", "params*", *(f"*{role}" for role in roles), "*"]
    assert [rule.count for rule in rules] == [1, 12 * 32, *[64] * 12, 0]


def test_another_argument_whose_name_begins_so_keeps_its_rules() -> None:
    roles = ("['a']", "['b']")
    specs = [NamedSpec(f"p{role}", (), 1, (number,)) for number, role in enumerate(roles)]
    states = [NamedSpec(f"{s}{role}", (("x",),), 1, (number,)) for s in "mv" for number, role in enumerate(roles)]
    rules = rules_of([*specs, *states, NamedSpec("pos", (("y",),), 1, (8,))])
    assert {rule.pattern for rule in rules} == {"p['a']", "p['b']", "pos", "*['a']", "*['b']", "*"}


def test_without_inputs_there_are_no_rules() -> None:
    assert rules_of([]) == ()


def test_the_code_gives_the_shardings() -> None:
    rules = rules_of([NamedSpec("params['layers'][*]['w']", MODEL, 2), NamedSpec("x", DATA, 1)])
    names: dict[str, Any] = {}
    exec(code_of(rules, {"data": 4, "model": 2}), names)
    mesh = names["make_mesh"]()
    params = {"layers": [{"w": np.zeros((8, 8)), "b": np.zeros(8)} for _ in range(2)]}
    found = names["shardings"](mesh, params=params, x=np.zeros((8, 8)))
    assert found["x"].spec == P("data") and found["params"]["layers"][1]["w"].spec == P(None, "model")
    assert found["params"]["layers"][0]["b"].spec == P() and found["x"].mesh == mesh

    def step(params: Any, x: Any) -> Any:
        return sum(x @ layer["w"] + layer["b"] for layer in params["layers"])

    placed = jax.device_put((params, np.zeros((8, 8))), tuple(found.values()))
    assert jax.jit(step, in_shardings=tuple(found.values()))(*placed).shape == (8, 8)


@pytest.mark.parametrize("name, fits", [("a['w']", True), ("['w']", True), ("a['w'][0]", False), ("a.w", False)])
def test_a_star_is_any_text(name: str, fits: bool) -> None:
    assert PlanRule("*['w']", DATA, 1).fits(name) is fits


class Variable:
    """A variable as flax.nnx has them in a state."""

    def __init__(self, value: Any) -> None:
        self.value = value


jax.tree_util.register_pytree_with_keys(
    Variable,
    lambda one: (((jax.tree_util.GetAttrKey("value"), one.value),), None),
    lambda _, children: Variable(*children),
)


def test_the_code_gives_the_shardings_of_a_state_of_nnx() -> None:
    specs = [NamedSpec(f"{name}.layers[*].up.kernel.value", MODEL, 2, (8, 8)) for name in ("model", "opt.mu")]
    specs += [NamedSpec(f"{name}.layers[*].down.kernel.value", DATA, 2, (8, 4)) for name in ("model", "opt.mu")]
    rules = rules_of(specs)
    assert [rule.pattern for rule in rules] == ["*.up.kernel.value", "*.down.kernel.value", "*"]
    names: dict[str, Any] = {}
    exec(code_of(rules, {"data": 4, "model": 2}), names)
    state = {
        "layers": {0: {"up": {"kernel": Variable(np.zeros((8, 8)))}, "down": {"kernel": Variable(np.zeros((8, 4)))}}}
    }
    found = names["shardings"](names["make_mesh"](), model=state)["model"]["layers"][0]
    assert [found[name]["kernel"].value.spec for name in ("up", "down")] == [P(None, "model"), P("data")]


def test_a_common_end_is_of_arrays_of_one_shape() -> None:
    """Not all kernels: most of these have one sharding by chance."""
    specs = [NamedSpec(f"model.{name}.kernel", DATA, 1, (8, at)) for at, name in enumerate(("q", "k", "v"))]
    specs.append(NamedSpec("model.o.kernel", MODEL, 1, (8, 8)))
    assert [rule.pattern for rule in rules_of(specs)] == ["*.q.kernel", "*.k.kernel", "*.v.kernel", "*.o.kernel", "*"]
