"""Logical axis rules as text to paste: for flax's linen and nnx, MaxText, and haliax."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import Enum

from pyshardy.errors import UsageError
from pyshardy.report.logical_fit import LogicalRule

_MAXTEXT = {
    name: f"ici_{key}_parallelism"
    for name, key in {
        "diloco": "diloco", "data": "data", "stage": "pipeline", "fsdp": "fsdp", "fsdp_transpose": "fsdp_transpose",
        "sequence": "sequence", "context": "context", "context_usp_ulysses": "context_usp_ulysses",
        "context_autoregressive": "context_autoregressive", "tensor": "tensor", "tensor_transpose": "tensor_transpose",
        "tensor_sequence": "tensor_sequence", "expert": "expert", "autoregressive": "autoregressive",
    }.items()
}  # fmt: skip
"""The mesh axes that MaxText's versions have, in its order, with the keys of their sizes."""
_FILLS = "fsdp"
"""The axis to which MaxText gives all devices that are left, unless it is told a size."""


class Framework(Enum):
    """What logical axis rules are written for, by the name that users give."""

    LINEN = "linen"
    """flax's linen."""
    NNX = "nnx"
    """flax's nnx."""
    MAXTEXT = "maxtext"
    """A configuration of MaxText."""
    HALIAX = "haliax"
    """An axis mapping of haliax."""

    @property
    def has_table(self) -> bool:
        """Whether it reads rules as a table, with one rule for every logical axis."""
        return self in (Framework.NNX, Framework.HALIAX)

    def code(self, rules: Sequence[LogicalRule], mesh: Sequence[tuple[str, int]], remarks: Sequence[str]) -> str:
        """The text to paste.

        Args:
            rules: The rules.
            mesh: The name and size of every mesh axis.
            remarks: Comments, one in a line.

        Raises:
            UsageError: The mesh has an axis that MaxText's does not have.
        """
        if self is Framework.MAXTEXT:
            return _maxtext(rules, mesh, remarks)
        text = {Framework.LINEN: _LINEN, Framework.NNX: _NNX, Framework.HALIAX: _HALIAX}[self]
        if self is Framework.HALIAX:
            pairs = [f"    {name!r}: {_python(axes)}," for name, axes in rules if axes]
        else:
            pairs = [f"    ({name!r}, {_python(axes)})," for name, axes in rules]
        lines = "\n".join([*(f"    # {one}" for one in remarks), *pairs])
        sizes, names = tuple(size for _, size in mesh), tuple(name for name, _ in mesh)
        return text.format(rules=lines, mesh=_MESH.format(sizes=sizes, names=names, count=len(names)))


def _python(axes: tuple[str, ...]) -> str:
    return repr(axes if len(axes) > 1 else axes[0] if axes else None)


def _maxtext(rules: Iterable[LogicalRule], mesh: Sequence[tuple[str, int]], remarks: Iterable[str]) -> str:
    """Lines of a configuration; MaxText keeps its own rules for other logical axes, and size 1 for other mesh axes.

    >>> print(_maxtext([("embed", ("fsdp",)), ("norm", ())], [("fsdp", 4), ("tensor", 2)], []), end="")
    ici_fsdp_parallelism: 4
    ici_tensor_parallelism: 2
    logical_axis_rules: [
      ["embed", ["fsdp"]],
      ["norm", []],
    ]
    """
    unknown = next((name for name, _ in mesh if name not in _MAXTEXT), None)
    if unknown is not None:
        raise UsageError(
            "writing logical axis rules for MaxText",
            got=f"the mesh axis {unknown!r}",
            needed=f"one of {', '.join(_MAXTEXT)}",
            hint='a plan for a mesh of these names, such as mesh={"fsdp": 4, "tensor": 2}',
        )
    sizes = {name: size for name, size in mesh if size > 1}
    known = [name for name in _MAXTEXT if name in sizes]
    lines = [f"# {one}" for one in remarks]
    if known != list(sizes):
        lines.append(f"# the mesh of the plan is {', '.join(sizes)}; MaxText puts devices on it in another order")
    if _FILLS not in sizes:
        lines.append(f"{_MAXTEXT[_FILLS]}: 1")
    lines += [f"{_MAXTEXT[name]}: {sizes[name]}" for name in known]
    pairs = [f"  {json.dumps([name, axes])}," for name, axes in rules]
    return "\n".join([*lines, "logical_axis_rules: [", *pairs, "]", ""])


_MESH = """\
def make_mesh():
    return jax.make_mesh({sizes}, {names}, axis_types=(AxisType.Auto,) * {count})"""

_LINEN = '''\
import flax.linen as nn
import jax
from jax.sharding import AxisType

RULES = (  # in order; an array uses a mesh axis once
{rules}
)


{mesh}


def shardings(mesh, variables):
    """The shardings of variables whose boxes name logical axes, also of a whole training state, by their shapes.

    shapes = jax.eval_shape(create, key)
    with jax.set_mesh(mesh), nn.logical_axis_rules(RULES):
        state = jax.jit(create, out_shardings=shardings(mesh, shapes))(key)
    """
    return nn.logical_to_mesh_sharding(nn.get_partition_spec(variables), mesh, RULES)
'''

_NNX = '''\
import jax
from flax import nnx
from flax.core.spmd import logical_axis_rules
from jax.sharding import AxisType

RULES = (
{rules}
)


{mesh}


def shardings(mesh, state):
    """The shardings of a state, with state = nnx.state(model), for jax.device_put and nnx.update.

    A model that is made under the mesh and the rules has them from the start:
    with jax.set_mesh(make_mesh()), logical_axis_rules(RULES):
        model = Model(nnx.Rngs(0))
    """
    with logical_axis_rules(RULES):
        return nnx.get_named_sharding(state, mesh)
'''

_HALIAX = '''\
import haliax as hax
import jax
from jax.sharding import AxisType

AXIS_MAPPING = {{  # of arguments: parameters, optimizer state, batch
{rules}
}}


{mesh}


def shard(mesh, tree):
    """A tree of named arrays on the devices."""
    with jax.set_mesh(mesh):
        return hax.shard(tree, AXIS_MAPPING)
'''
