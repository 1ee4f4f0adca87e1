"""How long a search takes: training steps of large models with unrolled layers, from the loaded program to a plan.

    python -m benchmarks.searching          # all
    python -m benchmarks.searching 8B       # one

Times are those of the processor, without tracing; the budget counts them too, so that it changes nothing what else the
machine does.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple
from unittest.mock import patch

import jax
import jax.numpy as jnp

import pyshardy


class Model(NamedTuple):
    """A decoder.

    Attributes:
        layers: How many layers.
        width: What layers hand on.
        heads: Heads of queries.
        shared: Heads of keys and values.
        hidden: The width inside of a layer; of every expert.
        vocabulary: How many tokens there are.
        batch: Sequences.
        length: Tokens of a sequence.
        experts: How many experts a layer has; none if 0.
        mesh: The mesh to search for.
        budget_s: Seconds that the search may take.
    """

    layers: int
    width: int
    heads: int
    shared: int
    hidden: int
    vocabulary: int
    batch: int
    length: int
    experts: int
    mesh: dict[str, int]
    budget_s: float


MODELS = {
    "8B": Model(32, 4096, 32, 8, 14336, 128256, 64, 2048, 0, {"data": 8, "model": 4}, 5.0),
    "405B": Model(126, 16384, 128, 8, 53248, 128256, 64, 4096, 0, {"data": 64, "model": 16}, 60.0),
    "experts": Model(60, 5120, 128, 128, 1536, 102400, 256, 2048, 64, {"data": 16, "expert": 16}, 60.0),
}


def training_step(model: Model) -> tuple[Any, tuple[Any, ...], tuple[int, ...]]:
    """A step of Adam, what it takes as shapes, and which of that is donated. Layers are computed again backward."""

    def shape(*sizes: int, dtype: Any = jnp.bfloat16) -> Any:
        return jax.ShapeDtypeStruct(sizes, dtype)

    width, hidden, experts = model.width, model.hidden, model.experts
    size = width // model.heads if not experts else 128
    repeat = model.heads // model.shared
    layer = {
        "q": shape(width, model.shared, repeat, size),
        "k": shape(width, model.shared, size),
        "v": shape(width, model.shared, size),
        "o": shape(model.shared, repeat, size, width),
        "attention_norm": shape(width),
        "norm": shape(width),
    }
    stacked = (experts,) if experts else ()
    layer |= {"gate": shape(*stacked, width, hidden), "up": shape(*stacked, width, hidden)}
    layer |= {"down": shape(*stacked, hidden, width)}
    if experts:
        layer["router"] = shape(width, experts)

    def norm(x: Any, weight: Any) -> Any:
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype) * weight

    def attend(x: Any, w: Any) -> Any:
        q = jnp.einsum("btw,wgrd->btgrd", x, w["q"])
        k, v = (jnp.einsum("btw,wgd->btgd", x, w[name]) for name in "kv")
        scores = jnp.einsum("btgrd,bsgd->bgrts", q, k).astype(jnp.float32) / size**0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e30)
        mixed = jnp.einsum("bgrts,bsgd->btgrd", jax.nn.softmax(scores, -1).astype(x.dtype), v)
        return jnp.einsum("btgrd,grdw->btw", mixed, w["o"])

    def dense(x: Any, w: Any) -> Any:
        return (jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["down"]

    def mixture(x: Any, w: Any) -> Any:
        gates = jax.nn.softmax((x @ w["router"]).astype(jnp.float32), -1).astype(x.dtype)
        capacity = 2 * model.length // experts
        slots = jax.nn.one_hot(jnp.cumsum(gates > 1.0 / experts, 1) - 1, capacity, dtype=x.dtype)
        sent = jnp.einsum("btec,btw->ebcw", slots, x)
        inside = jax.nn.silu(jnp.einsum("ebcw,ewh->ebch", sent, w["gate"]))
        made = jnp.einsum("ebch,ehw->ebcw", inside * jnp.einsum("ebcw,ewh->ebch", sent, w["up"]), w["down"])
        return jnp.einsum("ebcw,btec,bte->btw", made, slots, gates)

    @jax.checkpoint
    def block(x: Any, w: Any) -> Any:
        x = x + attend(norm(x, w["attention_norm"]), w)
        return x + (mixture if experts else dense)(norm(x, w["norm"]), w)

    def loss(params: Any, tokens: Any) -> Any:
        x = params["embed"][tokens]
        for w in params["layers"]:
            x = block(x, w)
        logits = (norm(x, params["norm"]) @ params["head"]).astype(jnp.float32)
        wanted = jnp.take_along_axis(logits, tokens[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - wanted)

    def step(params: Any, mean: Any, square: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, tokens)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, gradients)
        params = jax.tree.map(
            lambda p, m, s: p - (0.1 * m / (jnp.sqrt(s) + 1e-8)).astype(p.dtype), params, mean, square
        )
        return params, mean, square, value

    params = {
        "embed": shape(model.vocabulary, width),
        "head": shape(width, model.vocabulary),
        "norm": shape(width),
        "layers": [layer] * model.layers,
    }
    state = jax.tree.map(lambda leaf: shape(*leaf.shape, dtype=jnp.float32), params)
    return step, (params, state, state, shape(model.batch, model.length, dtype=jnp.int32)), (0, 1, 2)


def load(model: Model) -> pyshardy.Module:
    """The training step of a model, on its mesh."""
    step, arguments, donated = training_step(model)
    return pyshardy.load(jax.jit(step, donate_argnums=donated), *arguments, mesh=model.mesh, platform="tpu")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; all by default")
    parser.add_argument("--chip", default="h100")
    parser.add_argument("--budget", type=float, help="seconds; by default what is wanted for the model")
    parser.add_argument("--plans", action="store_true", help="print the plans")
    arguments = parser.parse_args()
    for name in arguments.names or MODELS:
        model = MODELS[name]
        module = load(model)
        with patch("time.monotonic", time.process_time):
            started = time.monotonic()
            plan = pyshardy.search(module, hardware=arguments.chip, budget_s=arguments.budget or model.budget_s)
            spent = time.monotonic() - started
        print(f"{name}: {spent:.1f} s, {plan.candidates} candidates, ended by {plan.summary.ended_by}")
        print(plan if arguments.plans else f"  {plan.step_seconds:.4g} s, {plan.peak_bytes / 2**30:.1f} GiB a step")
    return 0


if __name__ == "__main__":
    main()
