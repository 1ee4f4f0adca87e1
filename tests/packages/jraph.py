"""Programs with jraph: message passing on graphs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from .base import f32, gradient_step, i32, lower, program


def graphs(nodes: Any, edges: Any, *, count: int = 4) -> Any:
    """A batch of graphs with these features."""
    import jraph

    senders, receivers = i32(edges.shape[0]), i32(edges.shape[0])
    return jraph.GraphsTuple(nodes, edges, receivers, senders, f32(count, 8), i32(count), i32(count))


def dense(params, *features):
    """A layer on concatenated features."""
    return jax.nn.relu(jnp.concatenate([f for f in features if f is not None], -1) @ params)


@program("jraph")
def graph_convolution_step() -> jax.stages.Lowered:
    """Two graph convolutions with normalized adjacency, trained on nodes."""
    import jraph

    def loss(params, graph, labels):
        for weight in params:
            graph = jraph.GraphConvolution(lambda nodes, weight=weight: jax.nn.relu(nodes @ weight))(graph)
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(graph.nodes), labels[:, None], 1))

    return lower(gradient_step(loss), [f32(16, 32), f32(32, 12)], graphs(f32(24, 16), f32(32, 8)), i32(24))


@program("jraph")
def graph_attention() -> jax.stages.Lowered:
    """A graph attention layer: softmax over the edges of a node."""
    import jraph

    def run(params, graph):
        query, logits = params
        layer = jraph.GAT(
            lambda nodes: nodes @ query,
            lambda sent, received, edges: jnp.sum(
                jax.nn.leaky_relu(dense(logits, sent, received, edges)), -1, keepdims=True
            ),
            lambda nodes: jax.nn.elu(nodes),
        )
        return layer(graph).nodes

    return lower(run, (f32(16, 32), f32(72, 8)), graphs(f32(24, 16), f32(32, 8)))


@program("jraph")
def graph_network_step() -> jax.stages.Lowered:
    """A full graph network: edges, nodes and globals are updated, with sums, means and maxima over segments."""
    import jraph

    def loss(params, graph):
        network = jraph.GraphNetwork(
            update_edge_fn=lambda e, s, r, g: dense(params["edge"], e, s, r, g),
            update_node_fn=lambda n, s, r, g: dense(params["node"], n, s, r, g),
            update_global_fn=lambda n, e, g: dense(params["global"], n, e, g),
            aggregate_nodes_for_globals_fn=jraph.segment_mean,
            aggregate_edges_for_globals_fn=jraph.segment_max,
        )
        return jnp.mean(network(graph).globals ** 2)

    params = {"edge": f32(48, 16), "node": f32(56, 32), "global": f32(56, 8)}
    return lower(gradient_step(loss), params, graphs(f32(24, 16), f32(32, 8)))
