"""Random rules in einsum notation: where JAX reads one, pyshardy makes the same rule of it."""

from __future__ import annotations

from random import Random

import pytest
from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir, str_to_sdy_sharding_rule
from jax._src.interpreters.mlir import make_ir_context
from jaxlib.mlir import ir

from pyshardy.errors import ShardyError
from pyshardy.rules.einsum import einsum_rule
from pyshardy.rules.opspec import OpSpec

Shapes = list[tuple[int, ...]]
NAMES = "abcdef"
KINDS = ("reduction", "need_replication", "permutation")


def random_case(seed: int) -> tuple[str, Shapes, Shapes, dict[str, list[str]], dict[str, int]]:
    """A notation with shapes, special factors and sizes; most of the time they fit."""
    random = Random(seed)
    sizes = {name: random.choice((1, 2, 2, 3, 4, 5, 6)) for name in NAMES}
    leading = {group: [random.choice((2, 3, 4)) for _ in range(random.randint(0, 2))] for group in ("...", "...1")}
    values, shapes = [], []
    alone: set[str] = set()
    used: set[str] = set()
    for _ in range(random.randint(2, 4)):
        names = random.sample(NAMES, random.randint(0, 4))
        used.update(names)
        group = random.choice(("", "", "...", "...1"))
        words, shape = [group] if group else [], list(leading.get(group, ()))
        while names:
            width = min(len(names), random.choice((1, 1, 1, 2, 3)))
            part, names = names[:width], names[width:]
            words.append(part[0] if width == 1 else f"({random.choice((' ', '  ')).join(part)})")
            if width == 1:
                alone.update(part)
            size = 1
            for name in part:
                size *= sizes[name]
            shape.append(size)
        if shape and random.random() < 0.05:
            shape[random.randrange(len(shape))] += 1
        values.append(" ".join(words))
        shapes.append(tuple(shape))
    cut = random.randint(1, len(values) - 1)
    text = f"{','.join(values[:cut])} -> {', '.join(values[cut:])}"
    kinds: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for name in sorted(used):
        if random.random() < 0.3:
            kinds[random.choice(KINDS)].append(name)
    given = {name: sizes[name] for name in sorted(used - alone)}
    return text, shapes[:cut], shapes[cut:], kinds, given


def jax_rule(
    text: str, operands: Shapes, results: Shapes, kinds: dict[str, list[str]], sizes: dict[str, int]
) -> str | None:
    """What JAX makes of it; None if it refuses, or if the dialect does."""
    with make_ir_context() as context, ir.Location.unknown(context):
        types = [
            [ir.RankedTensorType.get(shape, ir.F32Type.get()) for shape in shapes] for shapes in (operands, results)
        ]
        try:
            rule = str_to_sdy_sharding_rule(
                text, **{f"{kind}_factors": tuple(names) for kind, names in kinds.items()}, **sizes
            )
            attr = sdy_sharding_rule_to_mlir(rule, *types)
            signature = f"({', '.join(map(str, types[0]))}) -> ({', '.join(map(str, types[1]))})"
            arguments = ", ".join(f"%a{i}: {type}" for i, type in enumerate(types[0]))
            ir.Module.parse(
                f"func.func @f({arguments}) {{ %r:{len(results)} = stablehlo.custom_call "
                f"@f({', '.join(f'%a{i}' for i in range(len(operands)))}) {{sdy.sharding_rule = {attr}}} : {signature} return }}"
            )
        except (ValueError, ir.MLIRError):
            return None
        return str(attr)


def our_rule(
    text: str, operands: Shapes, results: Shapes, kinds: dict[str, list[str]], sizes: dict[str, int]
) -> str | None:
    """What pyshardy makes of it; None if it refuses."""
    try:
        return f"#sdy.op_sharding_rule{einsum_rule(text, **kinds, sizes=sizes)(OpSpec('my.op', operands, results))}"  # type: ignore[arg-type]
    except ShardyError:
        return None


CASES = [random_case(seed) for seed in range(1500)]


def test_where_jax_has_a_rule_we_have_the_same() -> None:
    found = {index: jax_rule(*case) for index, case in enumerate(CASES)}
    accepted = {index: rule for index, rule in found.items() if rule is not None}
    assert len(accepted) > 500
    different = [(CASES[index], rule) for index, rule in accepted.items() if our_rule(*CASES[index]) != rule]
    assert different == []


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        # special factors in any order
        (("i j k -> j", [(2, 3, 4)], [(3,)], {"reduction": ["k", "i"]}, {}), "reduction={i, k}"),
        # sizes that follow from others
        (("(i j) -> i (j k)", [(6,)], [(2, 12)], {}, {}), "([ij])->([i, jk]) {i=2, j=3, k=4}"),
        # factors of size 1 in a compound dimension
        (("(i j) -> i j", [(6,)], [(6, 1)], {}, {}), "([i])->([i, j]) {i=6, j=1}"),
    ],
)
def test_what_we_take_and_jax_does_not(
    case: tuple[str, Shapes, Shapes, dict[str, list[str]], dict[str, int]], expected: str
) -> None:
    assert expected in str(our_rule(*case))
    assert jax_rule(*case) is None


def test_a_wrong_rule_is_noticed() -> None:
    case = ("i j -> j", [(2, 3)], [(3,)], {"reduction": ["i"]}, {})
    assert jax_rule(*case) == our_rule(*case)
    assert jax_rule(*case) != our_rule(*case[:3], {}, {})
