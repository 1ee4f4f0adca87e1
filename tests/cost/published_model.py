"""A decoder-only transformer's training step of any published shape, sharded as published: FSDP, tensor, data axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy


@dataclass(frozen=True)
class Model:
    """Sizes of a transformer.

    Attributes:
        layers, width, heads, kv_heads, depth, hidden, vocabulary: As in the published table.
        matrices: Of the feed-forward part: 3 with a gate, 2 without.
        experts: How many feed-forward parts there are to choose from; 0 for one that is always taken.
        chosen: How many of them a token takes.
        capacity: Tokens of a sequence that an expert takes, over what it would get if all got as many.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    depth: int
    hidden: int
    vocabulary: int
    matrices: int = 3
    experts: int = 0
    chosen: int = 2
    capacity: float = 1.25


@dataclass(frozen=True)
class Run:
    """How a model was trained.

    Attributes:
        model: Its sizes.
        sequence: Tokens of one sequence.
        batch: Sequences per step, in all.
        mesh: Axes from the outside in: "data" replicates weights, "fsdp" splits them, "tensor" splits layers.
        remat: "full" keeps the input of a layer, "dots" all products, "custom" queries, keys, values and attention,
            "none" everything.
        weights: Type of the weights.
    """

    model: Model
    sequence: int
    batch: int
    mesh: tuple[tuple[str, int], ...]
    remat: str = "full"
    weights: Any = jnp.float32


_BATCH_AXES = ("data", "fsdp", "expert")
_KEPT = ("query", "key", "value", "attention")


def _call(name: str, results: Any, *operands: Any) -> Any:
    return jax.ffi.ffi_call(name, results)(*operands)


@jax.custom_vjp
def attention(q: Any, k: Any, v: Any) -> Any:
    """Attention in one kernel."""
    return _call("causal_flash_attention", jax.ShapeDtypeStruct(q.shape, q.dtype), q, k, v)


def _forward(q: Any, k: Any, v: Any) -> Any:
    return attention(q, k, v), (q, k, v)


def _backward(kept: Any, gradient: Any) -> Any:
    shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in kept]
    return tuple(_call("causal_flash_attention_backward", shapes, *kept, gradient))


attention.defvjp(_forward, _backward)


class Step:
    """The training step on an abstract mesh."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.names = tuple(name for name, _ in run.mesh)
        auto = (AxisType.Auto,) * len(self.names)
        self.mesh = AbstractMesh(tuple(size for _, size in run.mesh), self.names, axis_types=auto)

    def spec(self, *axes: Any) -> Any:
        kept = []
        for axis in axes:
            names = (axis,) if isinstance(axis, str) else (axis or ())
            found = tuple(name for name in names if name in self.names)
            kept.append(found or None)
        return NamedSharding(self.mesh, P(*kept))

    def put(self, x: Any, *axes: Any) -> Any:
        return jax.lax.with_sharding_constraint(x, self.spec(*axes))

    def weights(self) -> dict[str, tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Shapes of the weights of a layer, with their axes."""
        m = self.run.model
        found = {
            "q": ((m.width, m.heads, m.depth), ("fsdp", "tensor", None)),
            "k": ((m.width, m.kv_heads, m.depth), ("fsdp", "tensor", None)),
            "v": ((m.width, m.kv_heads, m.depth), ("fsdp", "tensor", None)),
            "o": ((m.heads, m.depth, m.width), ("tensor", None, "fsdp")),
            "up": ((m.width, m.hidden), ("fsdp", "tensor")),
            "down": ((m.hidden, m.width), ("tensor", "fsdp")),
        }
        if m.experts:
            found["up"] = ((m.experts, m.width, m.hidden), ("expert", "fsdp", "tensor"))
            found["down"] = ((m.experts, m.hidden, m.width), ("expert", "tensor", "fsdp"))
            found["router"] = ((m.width, m.experts), ("fsdp", None))
        if m.matrices == 3:
            found["gate"] = found["up"]
        return found

    def gathered(self, w: Any, axes: tuple[Any, ...]) -> Any:
        """A weight as products use it: whole along the axis that stores parts of it; its gradient is stored in parts."""

        @jax.custom_vjp
        def whole(w: Any) -> Any:
            return self.put(w, *[None if axis == "fsdp" else axis for axis in axes])

        whole.defvjp(lambda w: (whole(w), None), lambda _, gradient: (self.put(gradient, *axes),))
        return whole(w.astype(jnp.bfloat16))

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        """Attention of the shards that a device has: whole sequences, some heads."""
        spec = self.spec(_BATCH_AXES, None, "tensor", None).spec
        run = jax.shard_map(attention, mesh=self.mesh, in_specs=(spec, spec, spec), out_specs=spec, check_vma=False)
        return run(q, k, v)

    def layer(self, x: Any, w: dict[str, Any]) -> Any:
        axes = {name: axes for name, (_, axes) in self.weights().items()}
        full = {name: self.gathered(value, axes[name]) for name, value in w.items()}
        h = self.norm(x)
        names = zip("qkv", ("query", "key", "value"))
        q, k, v = (checkpoint_name(jnp.einsum("btw,whd->bthd", h, full[one]), name) for one, name in names)
        mixed = checkpoint_name(self.attention(q, k, v), "attention")
        x = self.put(x + jnp.einsum("bthd,hdw->btw", mixed, full["o"]), _BATCH_AXES, None, None)
        h = self.norm(x)
        if self.run.model.experts:
            return self.put(x + self.mixture(h, full), _BATCH_AXES, None, None)
        up = h @ full["up"]
        up = jax.nn.silu(h @ full["gate"]) * up if "gate" in full else jax.nn.gelu(up)
        return self.put(x + up @ full["down"], _BATCH_AXES, None, None)

    def mixture(self, h: Any, full: dict[str, Any]) -> Any:
        """The chosen experts of every token, with products that move tokens to experts and back; those over are dropped."""
        m = self.run.model
        room = int(m.capacity * m.chosen * h.shape[1] / m.experts)
        weights, chosen = jax.lax.top_k(jax.nn.softmax((h @ full["router"]).astype(jnp.float32)), m.chosen)
        masks = jax.nn.one_hot(chosen, m.experts, dtype=jnp.float32)
        places = jnp.cumsum(masks.sum(2), 1)[:, :, None] * masks - 1
        slots = jax.nn.one_hot(places.max(-1).astype(jnp.int32), room, dtype=jnp.bfloat16)
        moved = jnp.einsum("btke,btkc->btec", masks.astype(jnp.bfloat16), slots)
        back = jnp.einsum("btke,btkc->btec", (masks * weights[..., None]).astype(jnp.bfloat16), slots)
        spread = (("data", "fsdp"), None, None)
        x = self.put(jnp.einsum("btec,btw->ebcw", moved, h), "expert", *spread)
        up = jnp.einsum("ebcw,ewf->ebcf", x, full["up"])
        up = jax.nn.silu(jnp.einsum("ebcw,ewf->ebcf", x, full["gate"])) * up
        out = self.put(jnp.einsum("ebcf,efw->ebcw", up, full["down"]), "expert", *spread)
        return jnp.einsum("btec,ebcw->btw", back, out)

    @staticmethod
    def norm(x: Any) -> Any:
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(jnp.bfloat16)

    def loss(self, params: Any, tokens: Any) -> Any:
        table = self.gathered(params["embed"], ("tensor", "fsdp"))
        x = self.put(table[tokens], _BATCH_AXES, None, None)
        policy = {
            "full": None,
            "dots": jax.checkpoint_policies.dots_saveable,
            "custom": jax.checkpoint_policies.save_only_these_names(*_KEPT),
            "none": jax.checkpoint_policies.everything_saveable,
        }[self.run.remat]
        layer = jax.checkpoint(self.layer, policy=policy)
        x, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), x, params["layers"])
        head = self.gathered(params["head"], ("fsdp", "tensor"))
        logits = (self.norm(x) @ head).astype(jnp.float32)
        logits = self.put(logits, _BATCH_AXES, None, "tensor")
        wanted = jnp.take_along_axis(logits, tokens[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - wanted)

    def __call__(self, params: Any, mean: Any, square: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(self.loss)(params, tokens)
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g.astype(m.dtype), mean, gradients)
        square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * (g * g).astype(s.dtype), square, gradients)
        params = jax.tree.map(
            lambda p, m, s: (p - 1e-3 * m / (jnp.sqrt(s) + 1e-8)).astype(p.dtype), params, mean, square
        )
        return params, mean, square, value

    def shapes(self) -> dict[str, Any]:
        """Shape and axes of every weight."""
        m = self.run.model
        layers = {name: ((m.layers, *shape), (None, *axes)) for name, (shape, axes) in self.weights().items()}
        return {
            "embed": ((m.vocabulary, m.width), ("tensor", "fsdp")),
            "head": ((m.width, m.vocabulary), ("fsdp", "tensor")),
            "layers": layers,
        }

    def tokens(self) -> Any:
        """The tokens of a step."""
        return jax.ShapeDtypeStruct((self.run.batch, self.run.sequence), jnp.int32)

    def lowered(self) -> Any:
        tree, dtype = self.shapes(), self.run.weights
        leaf = lambda one: isinstance(one, tuple)  # noqa: E731
        shapes = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one[0], dtype), tree, is_leaf=leaf)
        shardings = jax.tree.map(lambda one: self.spec(*one[1]), tree, is_leaf=leaf)
        state = jax.tree.map(lambda one: jax.ShapeDtypeStruct(one.shape, jnp.float32), shapes)
        tokens = self.tokens()
        data = self.spec(*[None] * (len(tokens.shape) - 2), _BATCH_AXES, None)
        jitted = jax.jit(
            self.__call__,
            in_shardings=(shardings, shardings, shardings, data),
            out_shardings=(shardings, shardings, shardings, None),
            donate_argnums=(0, 1, 2),
        )
        return jitted.trace(shapes, state, state, tokens).lower(lowering_platforms=("tpu",))


def program_of(run: Run) -> pyshardy.Module:
    """The training step of a run, lowered for as many devices as it had."""
    return pyshardy.load(Step(run).lowered())
