"""Other ways to train with a function of JAX: micro-batches, and another policy of rematerialization.

While the function is traced, `jax.grad`, `jax.value_and_grad`, `jax.checkpoint` and `jax.lax.scan` are other functions.
A gradient is then the mean of those of the micro-batches. A call of `jax.checkpoint` gets another policy; without any
such call, the bodies of scans are checkpointed. What the user's libraries call is found too, as long as they look these
functions up in JAX when they are called.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from pyshardy.errors import UsageError

_DOING: Final = "changing how a function trains"
_NOTHING: Final = "everything_saveable"
"""The policy with which nothing is computed again."""


@dataclass(frozen=True)
class Training:
    """A way to train.

    Attributes:
        microbatches: The number of parts of the batch, whose gradients are added.
        remat: The name of a policy of `jax.checkpoint_policies`; empty for what the function does.

    >>> print(Training(4, "dots_saveable"), "|", Training())
    4 micro-batches, remat dots_saveable | as written
    """

    microbatches: int = 1
    remat: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.microbatches, int) or isinstance(self.microbatches, bool) or self.microbatches < 1:
            raise UsageError(_DOING, got=f"microbatches={self.microbatches!r}", needed="a number from 1")
        if self.remat and self.remat not in remat_policies():
            needed = f"a policy of jax.checkpoint_policies: {', '.join(remat_policies())}"
            raise UsageError(_DOING, got=f"remat={self.remat!r}", needed=needed)

    def __str__(self) -> str:
        said = [f"{self.microbatches} micro-batches"] if self.microbatches > 1 else []
        said += [f"remat {self.remat}"] if self.remat else []
        return ", ".join(said) or "as written"


@dataclass
class Applied:
    """What a function calls while it is traced.

    Attributes:
        gradients: The calls of gradients.
        checkpoints: The calls of `jax.checkpoint`.
        scans: The calls of `jax.lax.scan`.
        batch: The size of the batch that was split; 0 if none was.
    """

    gradients: int = 0
    checkpoints: int = 0
    scans: int = 0
    batch: int = 0

    def how(self, training: Training) -> list[str]:
        """How to write a way to train, in sentences."""
        said = []
        if training.microbatches > 1:
            parts, rows = training.microbatches, self.batch // training.microbatches
            said.append(
                f"micro-batches: x.reshape({rows}, {parts}, *x.shape[1:]).swapaxes(0, 1) takes one row in {parts}, so "
                f"the batch keeps its axis; add up the gradients of the {parts} parts in jax.lax.scan"
            )
        if training.remat == _NOTHING:
            said.append("remat: leave jax.checkpoint out")
        elif training.remat:
            where = "" if self.checkpoints else " around the body of the scan"
            said.append(f"remat: jax.checkpoint(..., policy=jax.checkpoint_policies.{training.remat}){where}")
        return said


def remat_policies() -> list[str]:
    """The names of the policies of `jax.checkpoint_policies` that need no further arguments.

    >>> "dots_saveable" in remat_policies()
    True
    """
    needs_more = ("save_", "offload_")
    names = (name for name in dir(jax.checkpoint_policies) if not name.startswith("_"))
    return [name for name in names if not name.startswith(needs_more) and callable(_policy(name))]


def _policy(name: str) -> Any:
    return getattr(jax.checkpoint_policies, name)


@contextmanager
def trained(training: Training, before: Applied | None = None) -> Iterator[Applied]:
    """Trace functions in another way to train inside of a `with` block.

    JAX forgets the functions that it traced, as it would not trace them again.

    Args:
        training: The way.
        before: What the function calls as it is written; by default it is found out, and nothing is rematerialized.

    Raises:
        UsageError: The batch cannot be split, or there is nothing to rematerialize.
    """
    found = Applied()
    scan, checkpoint = jax.lax.scan, jax.checkpoint
    scans = training.remat if before is not None and not before.checkpoints else ""

    def new_scan(f: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        found.scans += 1
        return scan(_checkpointed(checkpoint, f, scans) if scans else f, *arguments, **keywords)

    def new_checkpoint(fun: Any = None, **keywords: Any) -> Any:
        if fun is None:
            return functools.partial(new_checkpoint, **keywords)
        found.checkpoints += 1
        if not training.remat:
            return checkpoint(fun, **keywords)
        keywords.pop("policy", None)
        return _checkpointed(checkpoint, fun, training.remat, **keywords)

    def of(gradient: Callable[..., Any], with_value: bool) -> Callable[..., Any]:
        def new_gradient(fun: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
            found.gradients += 1
            if training.microbatches == 1:
                return gradient(fun, *arguments, **keywords)
            return _accumulated(gradient, scan, with_value, fun, arguments, keywords, training.microbatches, found)

        return new_gradient

    with ExitStack() as stack:
        jax.clear_caches()
        stack.callback(jax.clear_caches)
        for place, name, new in (
            (jax.lax, "scan", new_scan),
            (jax, "checkpoint", new_checkpoint),
            (jax, "remat", new_checkpoint),
            (jax, "grad", of(jax.grad, False)),
            (jax, "value_and_grad", of(jax.value_and_grad, True)),
        ):
            stack.enter_context(patch.object(place, name, new))
        yield found
    if before is not None:
        _check(training, found)


def _check(training: Training, found: Applied) -> None:
    """Refuse a way to train that changed nothing."""
    hint = "jax.grad, jax.checkpoint and jax.lax.scan are found as attributes of jax and jax.lax, while it is traced"
    if training.microbatches > 1 and not found.gradients:
        needed = "a function that calls jax.grad or jax.value_and_grad"
        raise UsageError(_DOING, got="microbatches for a function without gradients", needed=needed, hint=hint)
    if training.remat and not found.checkpoints and not found.scans:
        needed = "a function that calls jax.checkpoint, or whose layers are in a scan"
        raise UsageError(_DOING, got="remat for a function without either", needed=needed, hint=hint)


def _checkpointed(checkpoint: Callable[..., Any], fun: Callable[..., Any], policy: str, **keywords: Any) -> Any:
    """A function whose results between are kept by a policy; itself if everything is kept."""
    return fun if policy == _NOTHING else checkpoint(fun, policy=_policy(policy), **keywords)


def _accumulated(
    gradient: Callable[..., Any],
    scan: Callable[..., Any],
    with_value: bool,
    fun: Callable[..., Any],
    options: Sequence[Any],
    keywords: dict[str, Any],
    parts: int,
    found: Applied,
) -> Callable[..., Any]:
    """The mean of the gradients of the parts of a batch, as `gradient(fun, ...)` gives that of the whole."""
    one = gradient(fun, *options, **keywords)
    argnums = options[0] if options else keywords.get("argnums", 0)
    has_aux = bool(options[1] if len(options) > 1 else keywords.get("has_aux", False))
    inner = {argnums} if isinstance(argnums, int) else set(argnums)

    @functools.wraps(fun)
    def mean(*arguments: Any, **named: Any) -> Any:
        held = tuple(argument for place, argument in enumerate(arguments) if place in inner)
        given = (tuple(None if place in inner else one for place, one in enumerate(arguments)), named)
        leaves, tree = jax.tree.flatten(given)
        size = found.batch = _batch_size(leaves, parts)
        is_split = [_rows(leaf) == size for leaf in leaves]

        def call(pieces: Sequence[Any]) -> Any:
            rest = iter(pieces)
            whole = [next(rest) if split else leaf for leaf, split in zip(leaves, is_split)]
            others, by_name = jax.tree.unflatten(tree, whole)
            inside = iter(held)
            return one(*[next(inside) if place in inner else other for place, other in enumerate(others)], **by_name)

        stacked = [_parts(leaf, parts) for leaf, split in zip(leaves, is_split) if split]
        first = [jax.eval_shape(lambda leaf: leaf[0], leaf) for leaf in stacked]
        traced, result = jax.make_jaxpr(call, return_shape=True)(first)  # once, which is all that flax.nnx allows
        shapes, result_tree = jax.tree.flatten(result)
        if has_aux and any(_rows(leaf) == size // parts for leaf in jax.tree.leaves(_auxiliary(result, with_value))):
            needed = "a loss whose results do not depend on the size of the batch"
            raise UsageError(_DOING, got="microbatches for a loss that also returns rows of the batch", needed=needed)

        def add(total: Any, pieces: Sequence[Any]) -> tuple[Any, None]:
            return [_sum(*pair) for pair in zip(total, jaxpr_as_fun(traced)(*pieces))], None

        total, _ = scan(add, [jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes], stacked)
        means = [(leaf / parts).astype(leaf.dtype) if _is_number(leaf) else leaf for leaf in total]
        return jax.tree.unflatten(result_tree, means)

    return mean


def _auxiliary(result: Any, with_value: bool) -> Any:
    """What a loss returns besides its value."""
    return result[0][1] if with_value else result[1]


def _sum(total: Any, new: Any) -> Any:
    return total + new if _is_number(total) else new


def _is_number(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def _rows(leaf: Any) -> int:
    shape = getattr(leaf, "shape", ())
    return shape[0] if shape else 0


def _parts(leaf: Any, parts: int) -> Any:
    """A leaf of the batch in parts of every n-th row, so that the rows keep their axis."""
    return leaf.reshape(leaf.shape[0] // parts, parts, *leaf.shape[1:]).swapaxes(0, 1)


def _batch_size(leaves: Sequence[Any], parts: int) -> int:
    """The rows that most arrays beside the parameters have.

    Raises:
        UsageError: There are none, or they cannot be split into so many parts.
    """
    counts = Counter(rows for leaf in leaves if (rows := _rows(leaf)))
    if not counts:
        hint = "jax.grad(loss)(params, batch), not jax.grad(lambda params: loss(params, batch))"
        raise UsageError(_DOING, got="microbatches", needed="a loss that takes the batch as an argument", hint=hint)
    size = max(counts, key=lambda rows: (counts[rows], rows))
    if size % parts:
        raise UsageError(_DOING, got=f"{parts} micro-batches of a batch of {size}", needed=f"a divisor of {size}")
    return size
