"""Rules that users give to ops; they override the built-in ones.

Source: docs/semantics/rules.md#rules-of-the-user
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pyshardy.core.intern import clear_caches
from pyshardy.core.text import named_type
from pyshardy.errors import InvalidRuleError, UsageError
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.partitioning_rules import call_rule, is_callback, is_jax_rule, notation_of, split_answer
from pyshardy.rules.rule import Rule

if TYPE_CHECKING:
    from pyshardy.rules.einsum import EinsumRule


UserRuleFunction = Callable[[OpSpec, bool], Rule | str | None]

USER_RULES: Final[dict[str, UserRuleFunction]] = {}
"""The rules that users have registered, by `OpSpec.key`."""


def register_rule(
    name: str,
    rule: Any,
    *,
    reduction: str | Iterable[str] = (),
    need_replication: str | Iterable[str] = (),
    permutation: str | Iterable[str] = (),
    blocked: str | Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
) -> None:
    """Give an op a sharding rule of your own; it overrides the built-in one.

    Args:
        name: The name of an op, "my_dialect.my_op"; "@target" for custom calls of a target; "composite:my.name" for
            composites of a name.
        rule: Einsum notation, "... i k, ... k j -> ... i j"; or a `Rule`, for ops of exactly its shapes; or a
            function of an `OpSpec` (shapes and attributes) and whether propagation is conservative, which returns
            either of these, or None if nothing may propagate through the op. The forms of JAX's `custom_partitioning`
            work too: an `SdyShardingRule`, or a callback of a mesh (None) and lists of arguments and results that have
            a `shape`.
        reduction: With a notation: factors that leave partial results when sharded; a list, or a string with spaces.
        need_replication: With a notation: factors that cannot be sharded without gathering first.
        permutation: With a notation: factors along which neighbours exchange data.
        blocked: With a notation: factors along which nothing propagates.
        sizes: With a notation: sizes of factors that appear only in compound dimensions, where these leave
            them open.

    Raises:
        NotationError: Notation that is not valid, with the place.
        UsageError: An invalid name or rule, a name that already has a registered rule, or options that do not go with
            the rule.

    >>> from pyshardy.rules.table import rule_of
    >>> register_rule("@my_matmul", "... i k, ... k j -> ... i j", reduction="k")
    >>> spec = OpSpec("stablehlo.custom_call", [(4, 8), (8, 16)], [(4, 16)], {"call_target_name": "my_matmul"})
    >>> print(rule_of(spec))
    <([i, j], [j, k])->([i, k]) {i=4, j=8, k=16} reduction={j}, custom>
    >>> unregister_rule("@my_matmul")
    >>> print(rule_of(spec))
    None
    """
    if not isinstance(name, str) or not name:
        needed = 'the name of an op, "@target" or "composite:name"'
        raise UsageError("registering a sharding rule", got=f"{name!r} as a name", needed=needed)
    if not isinstance(rule, (str, Rule)) and not callable(rule) and not is_jax_rule(rule):
        needed = "einsum notation, a Rule, or a function that returns either"
        raise UsageError(f"registering a sharding rule for {name}", got=f"{rule!r} as the rule", needed=needed)
    if name in USER_RULES:
        raise UsageError(
            f"registering a sharding rule for {name}",
            got="a name that already has a rule",
            needed="one rule per name",
            hint=f"unregister_rule({name!r}) first",
        )
    options = {
        "reduction": reduction,
        "need_replication": need_replication,
        "permutation": permutation,
        "blocked": blocked,
        "sizes": sizes,
    }
    given = ", ".join(option for option, value in options.items() if value)
    if given and not isinstance(rule, str):
        raise UsageError(f"registering a sharding rule for {name}", got=given, needed="these only with a notation")
    USER_RULES[name] = _builder(rule, options)
    clear_caches()


def unregister_rule(name: str) -> None:
    """Remove the rule that `register_rule` gave to a name; raises `UsageError` if there is none.

    >>> unregister_rule("@nobody")
    Traceback (most recent call last):
    pyshardy.errors.UsageError: unregistering the sharding rule of @nobody: got a name without a registered rule...
    """
    if not isinstance(name, str) or name not in USER_RULES:
        raise UsageError(
            f"unregistering the sharding rule of {name}",
            got="a name without a registered rule",
            needed=f"one of {', '.join(USER_RULES) or 'the names given to register_rule'}",
        )
    del USER_RULES[name]
    clear_caches()


def user_rule_of(spec: OpSpec, conservative: bool) -> Rule | None:
    """The rule from a user's rule for an op; raises `InvalidRuleError` if it does not fit the op."""
    found, options = split_answer(USER_RULES[spec.key](spec, conservative))
    if isinstance(found, str):
        found = _einsum_rule(found, **options)(spec)
    elif is_jax_rule(found):
        notation, options = notation_of(found)
        found = _einsum_rule(notation, **options)(spec)
    if found is not None and not isinstance(found, Rule):
        raise InvalidRuleError(
            "calling the function registered for the sharding rule",
            got=named_type(found),
            needed="a Rule, a notation or None",
        )
    if found is not None:
        _check_fit(found, spec)
    return found


def _einsum_rule(notation: str, **options: Any) -> EinsumRule:
    from pyshardy.rules.einsum import einsum_rule  # most programs do not need it

    return einsum_rule(notation, **options)


def _builder(rule: Any, options: Mapping[str, object]) -> UserRuleFunction:
    if isinstance(rule, str):
        return _einsum_rule(rule, **options)
    if is_jax_rule(rule):
        notation, options = notation_of(rule)
        return _einsum_rule(notation, **options)
    if isinstance(rule, Rule):
        return lambda spec, conservative: rule
    if is_callback(rule):
        return lambda spec, conservative: call_rule(rule, spec)
    builder: UserRuleFunction = rule
    return builder


def _check_fit(rule: Rule, spec: OpSpec) -> None:
    """Refuse a user's rule unless it has one mapping per value with one entry per dimension."""
    for kind, mappings, shapes in (
        ("operands", rule.operands, spec.operand_shapes),
        ("results", rule.results, spec.result_shapes),
    ):
        ranks, needed = [len(mapping) for mapping in mappings], [len(shape or ()) for shape in shapes]
        if ranks != needed:
            raise InvalidRuleError(
                f"using the registered rule {rule}", got=f"{kind} of ranks {ranks}", needed=f"ranks {needed}"
            )
