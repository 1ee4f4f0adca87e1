"""Other ways to train with a function of JAX: micro-batches, and another policy of rematerialization.

While the function is traced, `jax.grad`, `jax.value_and_grad`, `jax.checkpoint` and `jax.lax.scan` are other functions.
A gradient is then the mean of those of the micro-batches. A call of `jax.checkpoint` gets another policy; without any
such call, the bodies of scans are checkpointed. What the user's libraries call is found too, as long as they look these
functions up in JAX when they are called.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax.extend.core import jaxpr_as_fun

from pyshardy.errors import UsageError

_DOING: Final = "changing how a function trains"
_NOTHING: Final = "everything_saveable"
"""The policy with which nothing is computed again."""


@dataclass(frozen=True, slots=True)
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


@dataclass(slots=True)
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
    """Trace functions in another way to train inside of a `with` block, in one thread at a time.

    Make JAX forget the functions that it has traced; otherwise it would not trace them again.

    Args:
        training: The way.
        before: What the function calls as it is written; by default it is found out, and nothing is rematerialized.

    Raises:
        UsageError: The batch cannot be split, or there is nothing to rematerialize.
    """
    tracing = _Tracing(training, bool(before and before.checkpoints))
    with ExitStack() as stack:
        jax.clear_caches()
        stack.callback(jax.clear_caches)
        for place, name, new in (
            (jax.lax, "scan", tracing.scan),
            (jax, "checkpoint", tracing.checkpoint),
            (jax, "remat", tracing.checkpoint),
            (jax, "grad", partial(tracing.gradient, jax.grad)),
            (jax, "value_and_grad", partial(tracing.gradient, jax.value_and_grad)),
        ):
            stack.callback(setattr, place, name, getattr(place, name))
            setattr(place, name, new)
        yield tracing.found
    if before is not None:
        _check(training, tracing.found)


def _check(training: Training, found: Applied) -> None:
    """Refuse a way to train that changed nothing."""
    hint = "jax.grad, jax.checkpoint and jax.lax.scan are found as attributes of jax and jax.lax, while it is traced"
    if training.microbatches > 1 and not found.gradients:
        needed = "a function that calls jax.grad or jax.value_and_grad"
        raise UsageError(_DOING, got="microbatches for a function without gradients", needed=needed, hint=hint)
    if training.remat and not found.checkpoints and not found.scans:
        needed = "a function that calls jax.checkpoint, or whose layers are in a scan"
        raise UsageError(_DOING, got="remat for a function without either", needed=needed, hint=hint)


class _Tracing:
    """The functions that stand for those of JAX while a function is traced.

    Args:
        training: The way to train.
        has_checkpoints: Whether the function calls `jax.checkpoint`; if not, bodies of scans are checkpointed.
    """

    def __init__(self, training: Training, has_checkpoints: bool) -> None:
        self.training, self.has_checkpoints, self.found = training, has_checkpoints, Applied()
        self._scan, self._checkpoint, self._value_and_grad = jax.lax.scan, jax.checkpoint, jax.value_and_grad

    def scan(self, f: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        self.found.scans += 1
        body = f if self.has_checkpoints or not self.training.remat else self._remembering(f)
        return self._scan(body, *arguments, **keywords)

    def checkpoint(self, fun: Any = None, **keywords: Any) -> Any:
        if fun is None:
            return partial(self.checkpoint, **keywords)
        self.found.checkpoints += 1
        if not self.training.remat:
            return self._checkpoint(fun, **keywords)
        keywords.pop("policy", None)
        return self._remembering(fun, **keywords)

    def _remembering(self, fun: Callable[..., Any], **keywords: Any) -> Any:
        """A function whose results between are kept by the policy; itself if everything is kept."""
        name = self.training.remat
        return fun if name == _NOTHING else self._checkpoint(fun, policy=_policy(name), **keywords)

    def gradient(
        self, of: Callable[..., Any], fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **keywords: Any
    ) -> Any:
        self.found.gradients += 1
        one = of(fun, argnums, has_aux, **keywords)
        if self.training.microbatches == 1:
            return one
        inner = {argnums} if isinstance(argnums, int) else set(argnums)

        @functools.wraps(fun)
        def mean(*arguments: Any, **named: Any) -> Any:
            call, pieces = self._split(one, inner, arguments, named)
            first = [jax.eval_shape(lambda leaf: leaf[0], piece) for piece in pieces]
            traced, result = jax.make_jaxpr(call, return_shape=True)(first)  # once, which is all that flax.nnx allows
            if has_aux:
                self._check_auxiliary(result[0][1] if of is self._value_and_grad else result[1])
            return self._mean(jaxpr_as_fun(traced), pieces, result)

        return mean

    def _split(
        self, one: Callable[..., Any], inner: Collection[int], arguments: Sequence[Any], named: dict[str, Any]
    ) -> tuple[Callable[[Sequence[Any]], Any], list[Any]]:
        """A gradient as a function of a part of the batch, and the parts; those of one array are stacked."""
        parts, held = self.training.microbatches, [one for place, one in enumerate(arguments) if place in inner]
        given = (tuple(None if place in inner else one for place, one in enumerate(arguments)), named)
        leaves, tree = jax.tree.flatten(given)
        size = self.found.batch = _batch_size(leaves, parts)
        is_split = [_rows(leaf) == size for leaf in leaves]

        def call(pieces: Sequence[Any]) -> Any:
            rest, inside = iter(pieces), iter(held)
            whole = [next(rest) if split else leaf for leaf, split in zip(leaves, is_split)]
            others, by_name = jax.tree.unflatten(tree, whole)
            return one(*[next(inside) if place in inner else other for place, other in enumerate(others)], **by_name)

        return call, [_parts(leaf, parts) for leaf, split in zip(leaves, is_split) if split]

    def _check_auxiliary(self, auxiliary: Any) -> None:
        rows = self.found.batch // self.training.microbatches
        if any(_rows(leaf) == rows for leaf in jax.tree.leaves(auxiliary)):
            needed = "a loss whose results do not depend on the size of the batch"
            raise UsageError(_DOING, got="microbatches for a loss that also returns rows of the batch", needed=needed)

    def _mean(self, compute: Callable[..., Any], pieces: Sequence[Any], result: Any) -> Any:
        """The mean over the parts of what a function returns. Integers and truth values are those of the last part."""
        shapes, tree = jax.tree.flatten(result)

        def add(total: Any, piece: Sequence[Any]) -> tuple[Any, None]:
            return [old + new if _is_number(old) else new for old, new in zip(total, compute(*piece))], None

        total, _ = self._scan(add, [jnp.zeros(leaf.shape, leaf.dtype) for leaf in shapes], list(pieces))
        count = self.training.microbatches
        means = [(leaf / count).astype(leaf.dtype) if _is_number(leaf) else leaf for leaf in total]
        return jax.tree.unflatten(tree, means)


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
