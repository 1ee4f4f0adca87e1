"""Sharding groups as the propagation passes start with them.

Source: docs/semantics/propagation.md#sharding-groups
"""

from __future__ import annotations

import pytest

from pyshardy.ir.diagnostics import Diagnostics, PassError
from pyshardy.ir.functions import arg_attrs, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.passes.pipeline import run_pipeline

from .short import text

MESH = 'sdy.mesh @m = <["p"=2, "q"=2]>\nsdy.mesh @n = <["p"=2]>\n'


def propagated(*shardings: str | None, groups: tuple[int, ...] | None = None) -> tuple[Module, list[str]]:
    """Arguments in group 0, or in these groups, after basic propagation; and the warnings."""
    args = [
        f"%{index}: tensor<8x8xf32>" + (f" {{sdy.sharding = #sdy.sharding<@m, {one}>}}" if one else "")
        for index, one in enumerate(shardings)
    ]
    ids = groups or (0,) * len(args)
    body = "".join(f"  sdy.sharding_group %{index} group_id={id} : tensor<8x8xf32>\n" for index, id in enumerate(ids))
    diagnostics = Diagnostics()
    module = Module.parse(f"{MESH}func.func @main({', '.join(args)}) {{\n{body}  return\n}}")
    found = run_pipeline(module, "sdy-basic-propagate", diagnostics)
    found.verify()
    return found, [f"{one.severity.value}: {one.message}" for one in diagnostics.messages]


def arguments(module: Module) -> list[str | None]:
    main = main_function(module.root)
    return [text(arg_attrs(main, arg.index).get("sdy.sharding")) for arg in main.region.blocks[0].args]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (['[{"p"}, {?}]', None], ['[{"p"}, {?}]'] * 2),
        (['[{"p"}, {?}]', "[{?}, {?}]", '[{"p"}, {?}]'], ['[{"p"}, {?}]'] * 3),
        # those that are open and empty do not count, even with replicated axes
        (['[{?}, {?}], replicated={"q"}', '[{"p"}p1, {}]'], ['[{"p"}p1, {}]'] * 2),
        (["[{}, {?}]", None], ["[{}, {?}]"] * 2),
        ([None, None], [None, None]),
        ([None, "[{?}, {?}]"], [None, "[{?}, {?}]"]),
        (['[{"p"}, {?}]'], ['[{"p"}, {?}]']),
    ],
)
def test_members_start_with_one_sharding(before: list[str | None], after: list[str | None]) -> None:
    module, warnings = propagated(*before)
    assert arguments(module) == after
    assert warnings == []


def test_members_that_differ_are_freed_by_constraints() -> None:
    module, warnings = propagated('[{"p"}, {?}]', '[{?}, {"p"}]')
    assert warnings == [
        "warning: the members of sharding group 0 have different shardings; open constraints replace them in the group"
    ]
    constraints = [op for op in walk(module.root) if op.name == "sdy.sharding_constraint"]
    assert [op.operands[0].index for op in constraints] == [1, 0]
    assert [text(op.attrs["sharding"]) for op in constraints] == ['[{?}, {"p", ?}]'] * 2
    members = [op.operands[0] for op in walk(module.root) if op.name == "sdy.sharding_group"]
    assert members == [constraints[1].result, constraints[0].result]


def test_groups_are_apart_and_gaps_do_not_matter() -> None:
    module, _ = propagated('[{"p"}, {?}]', '[{"q"}, {}]', None, None, groups=(0, 5, 5, 0))
    assert arguments(module) == ['[{"p"}, {?}]', '[{"q"}, {}]', '[{"q"}, {}]', '[{"p"}, {?}]']


def test_a_value_in_two_groups() -> None:
    body = "".join(f"sdy.sharding_group %x group_id={id} : tensor<8x8xf32>\n" for id in (1, 0))
    module = Module.parse(f"{MESH}func.func @main(%x: tensor<8x8xf32>) {{\n{body}return }}")
    with pytest.raises(PassError, match="'sdy.sharding_group' op puts a value into a second sharding group"):
        run_pipeline(module, "sdy-basic-propagate")
