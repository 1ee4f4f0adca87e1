"""A training step whose layers are spread over pipeline stages: what one replica of the model does.

Every stage works on another microbatch at a time, and passes its result on. With virtual stages a microbatch comes
around several times, and the stages wait less at the start and the end. All stages take the same chunk of their layers
at a time, one chunk after the other, which costs as much as the order of real schedules. What goes from stage to stage
is cut over the devices of a stage, as Megatron does. Every stage computes the last layer as long as the last one does;
the gradient of the embedding is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

import pyshardy

from .published_model import Model, Run, Step, attention


@dataclass(frozen=True)
class Pipeline:
    """How a model was trained.

    Attributes:
        model: Its sizes.
        sequence: Tokens of one sequence.
        stages: Over how many groups of devices the layers are spread.
        tensor: Devices of a group.
        micro: Sequences of a microbatch.
        count: Microbatches of a step.
        virtual: How often a microbatch comes around.
        remat: As in `Run`.
    """

    model: Model
    sequence: int
    stages: int
    tensor: int
    micro: int
    count: int
    virtual: int = 1
    remat: str = "full"

    @property
    def run(self) -> Run:
        """The same as a run of one replica."""
        mesh = (("stage", self.stages), ("tensor", self.tensor))
        return Run(self.model, self.sequence, self.micro * self.count, mesh, self.remat)


class _PipelineStep(Step):
    def __init__(self, pipeline: Pipeline) -> None:
        super().__init__(pipeline.run)
        self.pipeline = pipeline

    def attention(self, q: Any, k: Any, v: Any) -> Any:
        spec = self.spec("stage", None, None, "tensor", None).spec

        def local(q: Any, k: Any, v: Any) -> Any:
            return attention(q[0], k[0], v[0])[None]

        return jax.shard_map(local, mesh=self.mesh, in_specs=(spec,) * 3, out_specs=spec, check_vma=False)(q, k, v)

    def layer(self, x: Any, w: dict[str, Any]) -> Any:
        h = self.norm(x)
        q, k, v = (jnp.einsum("sbtw,swhd->sbthd", h, w[one]) for one in "qkv")
        x = self.put(x + jnp.einsum("sbthd,shdw->sbtw", self.attention(q, k, v), w["o"]), "stage", None, None, None)
        up = jnp.einsum("sbtw,swf->sbtf", self.norm(x), w["up"])
        up = (
            jax.nn.gelu(up)
            if "gate" not in w
            else jax.nn.silu(jnp.einsum("sbtw,swf->sbtf", self.norm(x), w["gate"])) * up
        )
        return self.put(x + jnp.einsum("sbtf,sfw->sbtw", up, w["down"]), "stage", None, None, None)

    def loss(self, params: Any, tokens: Any) -> Any:
        one = self.pipeline
        inputs = jax.lax.stop_gradient(params["embed"].astype(jnp.bfloat16)[tokens])
        layers = jax.tree.map(lambda w: w.astype(jnp.bfloat16), params["layers"])
        layer = jax.checkpoint(self.layer)
        first = jnp.arange(one.stages)[:, None, None, None] == 0

        def tick(state: Any, at: Any) -> tuple[Any, Any]:
            for chunk in layers:
                new = inputs[jnp.minimum(at, one.count - 1)]
                sent = self.put(
                    jnp.roll(self.put(state, "stage", None, None, "tensor"), 1, 0), "stage", None, None, "tensor"
                )
                state = jnp.where(first, new, self.put(sent, "stage", None, None, None))
                chunk = jax.tree.map(lambda w: jnp.moveaxis(w, 1, 0), chunk)
                state, _ = jax.lax.scan(lambda x, w: (layer(x, w), None), state, chunk)
            return state, state

        shape = (one.stages, one.micro, one.sequence, one.model.width)
        start = self.put(jnp.zeros(shape, jnp.bfloat16), "stage", None, None, None)
        ticks = one.count + -(-(one.stages - 1) // one.virtual)
        _, found = jax.lax.scan(tick, start, jnp.arange(ticks))
        found = self.put(found[-one.count :], None, "stage", None, None, None)
        logits = (self.norm(found) @ params["head"].astype(jnp.bfloat16)).astype(jnp.float32)
        logits = self.put(logits, None, "stage", None, None, "tensor")
        wanted = jnp.take_along_axis(logits, tokens[:, None, ..., None], -1)[..., 0]
        is_last = jnp.arange(one.stages)[:, None, None] == one.stages - 1
        return jnp.mean(jnp.where(is_last, jax.nn.logsumexp(logits, -1) - wanted, 0.0))

    def shapes(self) -> dict[str, Any]:
        one, m = self.pipeline, self.run.model
        per_chunk = m.layers // (one.stages * one.virtual)
        chunk = {
            name: ((one.stages, per_chunk, *shape), ("stage", None, *axes))
            for name, (shape, axes) in self.weights().items()
        }
        return {
            "embed": ((m.vocabulary, m.width), (None, "tensor")),
            "head": ((m.width, m.vocabulary), (None, "tensor")),
            "layers": [chunk] * one.virtual,
        }

    def tokens(self) -> Any:
        return jax.ShapeDtypeStruct((self.pipeline.count, self.pipeline.micro, self.pipeline.sequence), jnp.int32)


def program_of_pipeline(pipeline: Pipeline) -> pyshardy.Module:
    """The training step of one replica, lowered for its devices."""
    return pyshardy.load(_PipelineStep(pipeline).lowered())
