"""What Model Explorer reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from golden.situations import SITUATIONS
from pyshardy.report.page.model_explorer import model_explorer

from .results import MLP, data_of


def problems(collection: dict[str, Any]) -> list[str]:
    """What of a collection Model Explorer would not take."""
    found = []
    for graph in collection["graphs"]:
        nodes = {node["id"]: node for node in graph["nodes"]}
        if len(nodes) != len(graph["nodes"]):
            found.append("two nodes of one id")
        for node in graph["nodes"]:
            for pair in [*node["attrs"], *(pair for output in node["outputsMetadata"] for pair in output["attrs"])]:
                if set(pair) != {"key", "value"} or not all(isinstance(text, str) for text in pair.values()):
                    found.append(f"{node['id']}: {pair}")
            for edge in node["incomingEdges"]:
                outputs = [
                    one["id"] for one in nodes.get(edge["sourceNodeId"], {"outputsMetadata": []})["outputsMetadata"]
                ]
                if edge["sourceNodeOutputId"] not in outputs:
                    found.append(f"{node['id']}: {edge}")
    return found


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_nodes_and_edges_fit(situation: Any) -> None:
    collection = model_explorer([data_of(situation.name)])
    assert problems(collection) == []
    assert sum(len(node["incomingEdges"]) for node in collection["graphs"][0]["nodes"]) > 0


def test_an_edge_from_nowhere_is_noticed() -> None:
    collection = model_explorer([data_of("mlp")])
    edges = [edge for node in collection["graphs"][0]["nodes"] for edge in node["incomingEdges"]]
    edges[0]["sourceNodeId"] = "op99"
    assert problems(collection)


def test_nodes_have_shardings_scopes_and_collectives(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    pyshardy.propagate(MLP).report(path, format="model-explorer")
    collection = json.loads(path.read_text())
    nodes = collection["graphs"][0]["nodes"]
    (tanh,) = [node for node in nodes if node["label"] == "tanh"]
    assert tanh["namespace"].endswith("mlp.mlir:9")
    assert {"key": "sharding", "value": "P('data', 'model')"} in tanh["outputsMetadata"][0]["attrs"]
    assert [len(node["incomingEdges"]) for node in nodes if node["namespace"] == "outputs"] == [1]
    assert [node["label"] for node in nodes if node["namespace"] == "inputs"] == ["x", "params['w1']", "params['w2']"]
    assert [node["label"] for node in nodes if any(pair["key"] == "all-reduce" for pair in node["attrs"])] == [
        "dot_general"
    ]


def test_two_results_are_two_graphs(tmp_path: Path) -> None:
    path = tmp_path / "graphs.json"
    result = pyshardy.propagate(MLP)
    result.report(path, compare=result, format="model-explorer")
    collection = json.loads(path.read_text())
    assert set(collection) == {"label", "graphs"}  # an object: a list of collections is refused there
    assert [graph["id"] for graph in collection["graphs"]] == ["function @main (1)", "function @main (2)"]
