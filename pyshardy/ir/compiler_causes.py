"""For the collectives of a program that a compiler partitioned: the op that each serves, and windowed products.

XLA cuts a gather or a sum of partial products beside a large product into permutes, in a loop that multiplies one part
while the next one is on its way. It calls that a windowed product (a collective matmul).
"""

from __future__ import annotations

from collections.abc import Iterable

from pyshardy.core.collectives import CollectiveKind
from pyshardy.core.scopes import is_gradient
from pyshardy.ir.locations import scope_of
from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.trip_counts import LOOP
from pyshardy.rules.properties import PRODUCTS

_MOST_USERS = 64
"""The number of ops to look at for one that has a line."""
_PERMUTE = f"stablehlo.{CollectiveKind.COLLECTIVE_PERMUTE.value}"


class CompilerCauses:
    """The causes of the collectives of a program that a compiler partitioned.

    Args:
        root: The module. It must not change meanwhile.
    """

    def __init__(self, root: Op) -> None:
        self._windowed = windowed_permutes(root)

    def windowed(self, op: Op) -> str | None:
        """The collective that a permute is a part of, such as "all_gather"; None for any other op."""
        found = self._windowed.get(op)
        return None if found is None else found.value

    def served(self, op: Op) -> Op:
        """The op that a collective serves: itself if JAX named it, else the nearest user that JAX named.

        The compiler gives a gather of an input the name of the input, and no line.
        """
        found, seen = [op], {op}
        for one in found:
            if "/" in (scope_of(one.location) or ""):
                return one
            found += [user for value in one.results for user in value.users() if user not in seen]
            seen.update(found)
            if len(found) > _MOST_USERS:
                break
        return op

    def cause(self, op: Op) -> str | None:
        """The op that a collective serves, by the name that JAX gave it, in words; None if it has none."""
        scope, windowed = scope_of(self.served(op).location), self.windowed(op)
        served = None if scope is None else scope.rpartition("/")[2] + " in the gradient" * is_gradient(scope)
        return served if windowed is None else f"windowed {windowed} of {served}"


def windowed_permutes(root: Op) -> dict[Op, CollectiveKind]:
    """The permutes of windowed products, each with the collective that they are made of.

    The partitioner gives the loop, its products and its permutes the name of the product; a loop of the user has
    another name than the products in it.

    Args:
        root: The module.
    """
    found: dict[Op, CollectiveKind] = {}
    for loop in ops_named(root, (LOOP,)):
        body, name = loop.regions[1].block, scope_of(loop.location)
        permutes = [op for op in body if _is_permute(op, name)]
        products = [op for op in body if op.name in PRODUCTS and scope_of(op.location) == name] if permutes else []
        if name is None or not products:
            continue
        sums = _made_of(products, body)
        for op in permutes:
            found[op] = CollectiveKind.REDUCE_SCATTER if op.operands[0] in sums else CollectiveKind.ALL_GATHER
        before = (value.defining_op for value in loop.operands)
        found.update((op, CollectiveKind.ALL_GATHER) for op in before if op is not None and _is_permute(op, name))
        after = (op for value in loop.results for op in value.users())
        found.update((op, CollectiveKind.REDUCE_SCATTER) for op in after if _is_permute(op, name))
    return found


def _is_permute(op: Op, name: str | None) -> bool:
    return op.name == _PERMUTE and scope_of(op.location) == name


def _made_of(products: Iterable[Op], body: Block) -> set[Value]:
    """The values in the body of a loop that depend on products, of this round or of one before."""
    found = {value for op in products for value in op.results}
    count = -1
    while count != len(found):
        count = len(found)
        for op in body:
            if any(value in found for value in op.operands):
                found.update(op.results)
        found.update(arg for arg, value in zip(body.args, body.terminator.operands) if value in found)
    return found
