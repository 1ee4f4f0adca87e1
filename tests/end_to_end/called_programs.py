"""Random JAX programs of functions that call each other, as functions, as copies and as named computations."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
from end_to_end import composed_programs
from end_to_end.composed_programs import small
from jax import lax

from pyshardy.ir.functions import functions, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.symbols import ORIGINAL_NAME
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.table import pass_of

_SHAPES = ((8, 6), (4, 8), (6, 12), (2, 8, 4), (5, 7))
_Both = Callable[[Any, Any], Any]


@jax.jit
def _mix(x: Any, y: Any) -> Any:
    return small(x + jnp.roll(y, 1, 0))


@jax.jit
def _mix_otherwise(x: Any, y: Any) -> Any:
    return small(y - x[::-1])


@jax.jit
def _return_one(x: Any, _: Any) -> Any:
    return x


@jax.jit
def _twice(x: Any, y: Any) -> Any:
    return _mix(_mix(x, y), y * 2)


@jax.jit
def _largest(x: Any, y: Any) -> Any:
    return small(_twice(y, x) - jnp.max(_mix_otherwise(x, y), 0))


@jax.jit
def _around(x: Any, y: Any) -> Any:
    return lax.scan(lambda carry, _: (_mix(carry, y), None), x, None, length=2)[0]


@jax.jit
def _either(x: Any, y: Any) -> Any:
    return lax.cond(x.sum() > 0, _twice, _mix_otherwise, x, y)


@jax.custom_jvp
def _own_gradient(x: Any, y: Any) -> Any:
    return _mix(x, y) * 2


_own_gradient.defjvp(lambda primals, tangents: (_own_gradient(*primals), 2 * tangents[0] - jnp.roll(tangents[1], 1, 0)))
_FUNCTIONS: tuple[_Both, ...] = (
    _mix, _mix_otherwise, _return_one, _twice, _largest, _around, _either, _own_gradient, jax.checkpoint(_largest)
)  # fmt: skip


def _call(r: Random, x: Any, y: Any) -> Any:
    return r.choice(_FUNCTIONS)(x, y)


def _call_again(r: Random, x: Any, y: Any) -> Any:
    function = r.choice(_FUNCTIONS)
    return function(function(y, x), x)


def _call_on_parts(r: Random, x: Any, y: Any) -> Any:
    function, middle = r.choice(_FUNCTIONS), x.shape[0] // 2
    return jnp.concatenate([function(x[:middle], y[:middle]), function(x[middle:], y[middle:])])


def _gradient(r: Random, x: Any, y: Any) -> Any:
    function = r.choice(_FUNCTIONS)
    return jax.grad(lambda a: jnp.sum(function(a, y)))(x)


_STEPS = (_call, _call, _call_again, _call_again, _call_on_parts, _gradient)


def unsharded(seed: int) -> tuple[str, Random]:
    """A program without shardings, and what its shardings are drawn with."""
    function, args = composed_programs.function(seed, "called", _STEPS, _SHAPES)
    random = Random(f"called sharded {seed}")
    return disguised(jax.jit(function).lower(*args).as_text(), random), random


def disguised(text: str, random: Random) -> str:
    """The module with its calls as they are, or as copies or computations, under names that may say nothing."""
    passes = random.choice(
        (
            (),
            ("sdy-flatten-call-graph",),
            ("sdy-import-func-calls",),
            ("sdy-flatten-call-graph", "sdy-import-func-calls"),
        )
    )
    module = run_passes(Module.parse(text), [pass_of(name) for name in (*passes, "symbol-dce")])
    root, is_named = module.copy_root(), random.random() < 0.5
    with module.context:
        for computation in ops_named(root, ("sdy.named_computation",)) if is_named else ():
            computation.set_attr("name", random.choice(("f", "main", computation.attrs["name"])))
        for function in functions(root) if is_named else ():
            if function is not main_function(root) and random.random() < 0.7:
                function.set_attr(ORIGINAL_NAME, random.choice(("f", "main", "_mix")))
        return module.with_root(root).text(generic=True)
