"""The scopes in the names that JAX gives to ops."""

from __future__ import annotations

import re

OF_JAX = frozenset(
    (
        "while", "body", "cond", "closed_call", "core_call", "checkpoint", "remat", "rematted_computation",
        "eval_jaxpr", "custom_jvp_call", "custom_vjp_call", "pjit",
    )
)  # fmt: skip
"""Scopes and functions that JAX adds."""
_WRAPPER = re.compile(r"\w+\((.*)\)")


def user_scopes(name: str | None) -> list[str]:
    """The user-defined scopes in the name of an op, outermost first; modules of flax are such scopes.

    >>> user_scopes("jit(step)/decoder/while/body/transpose(jvp(mlp))/dot_general")
    ['decoder', 'mlp']
    >>> user_scopes("jit(step)/transpose(jvp(Model))/jvp(Model)/checkpoint/mlp/dot_general")
    ['Model', 'mlp']
    """
    found = []
    before = ""  # what the part before is a transformation of
    for whole in (name or "").split("/")[:-1]:
        part = whole
        while (inner := _WRAPPER.fullmatch(part)) and not part.startswith(("jit(", "pjit(")):
            part = inner[1]
        is_again = part == before and part != whole  # the backward pass of a checkpoint names both passes
        before = part if part != whole else ""
        if part and "(" not in part and "->" not in part and part not in OF_JAX and not is_again:
            found.append(part)
    return found


def is_gradient(name: str | None) -> bool:
    """Whether JAX made an op of this name for the gradient, going back through what a user wrote.

    >>> is_gradient("jit(step)/transpose(jvp(mlp))/dot_general"), is_gradient("jit(step)/jvp(mlp)/dot_general")
    (True, False)
    """
    return any(part.startswith("transpose(") for part in (name or "").split("/"))


def scope_path(name: str | None) -> str | None:
    """The user-defined scopes in the name of an op as a path; None if there are none.

    >>> scope_path("jit(step)/jvp(decoder)/mlp/dot_general"), scope_path("jit(step)/dot_general")
    ('decoder/mlp', None)
    """
    return "/".join(user_scopes(name)) or None
