"""A result for Model Explorer: a collection of graphs with a node per op.

The format is that of its files: a label and graphs. Nodes have a namespace that nests them, edges from outputs to
inputs, and attributes as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

from pyshardy.core.text import format_bytes

_INPUTS, _OUTPUTS, _EDGE = "inputs", "outputs", "data_flow_edge"


def model_explorer(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A collection of graphs, one per result.

    Args:
        results: Results of `describe`.
    """
    names = [data["overview"]["source"] or data["overview"]["title"] for data in results]
    graphs = [{"id": name, "nodes": list(_nodes(data))} for name, data in zip(names, results)]
    return {"label": ", ".join(names), "graphs": graphs}


def _nodes(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    ops, texts = data["ops"], data["texts"]
    kinds = [texts[kind] for kind in ops["kind"]]
    operands, results = _lists(ops["operands"]), _lists(ops["results"])
    namespaces, needs, inputs = _namespaces(data), _needs(data), _values(data["inputs"])
    shown = [op for op, kind in enumerate(kinds) if op in namespaces or kind.endswith(".constant")]
    makers = _makers(inputs, kinds, operands, results, set(shown))
    yield from (_port(data, value, _INPUTS, []) for value in inputs)
    for op in shown:
        file = texts[ops["file"][op]]
        place = [("source", f"{file}:{ops['line'][op]}")] if file else []
        yield {
            "id": f"op{op}",
            "label": kinds[op].rpartition(".")[2],
            "namespace": namespaces.get(op, "constants"),
            "attrs": _attrs([("op", kinds[op]), ("scope", texts[ops["scope"][op]]), *place, *needs.get(op, [])]),
            "incomingEdges": _edges(operands[op], makers),
            "outputsMetadata": [_output(data, at, value) for at, value in enumerate(results[op])],
        }
    outputs = sorted(_values(data["outputs"]))
    is_return = [kind == "func.return" and len(given) == len(outputs) for kind, given in zip(kinds, operands)]
    returned = operands[is_return.index(True)] if True in is_return else []
    for at, value in enumerate(outputs):
        yield _port(data, value, _OUTPUTS, _edges(returned[at : at + 1], makers))


def _makers(
    inputs: Sequence[int],
    kinds: Sequence[str],
    operands: Sequence[Sequence[int]],
    results: Sequence[Sequence[int]],
    shown: Set[int],
) -> dict[int, tuple[str, str]]:
    """Per value, its node and its number among the node's results; edge ops are skipped."""
    found = {value: (f"value{value}", "0") for value in inputs}
    for op, values in enumerate(results):
        if op in shown:
            found.update({value: (f"op{op}", str(at)) for at, value in enumerate(values)})
    for op, kind in enumerate(kinds):
        if kind.endswith(_EDGE) and operands[op][0] in found:
            found[results[op][0]] = found[operands[op][0]]
    return found


def _values(ports: Sequence[Any]) -> list[int]:
    return [value for port in ports for value in port[3]]


def _edges(operands: Sequence[int], makers: Mapping[int, tuple[str, str]]) -> list[dict[str, str]]:
    return [
        {"sourceNodeId": makers[value][0], "sourceNodeOutputId": makers[value][1], "targetNodeInputId": str(at)}
        for at, value in enumerate(operands)
        if value in makers
    ]


def _lists(flat: list[list[int]]) -> list[list[int]]:
    lengths, numbers = flat
    found, at = [], 0
    for length in lengths:
        found.append(numbers[at : at + length])
        at += length
    return found


def _namespaces(data: dict[str, Any]) -> dict[int, str]:
    """Per op, the names of the tree nodes above it."""
    found: dict[int, str] = {}

    def visit(node: list[Any], above: str) -> None:
        name, kind, _, below = node
        if kind == 2:
            found.update(dict.fromkeys(below, above))
            return
        inside = f"{above}/{data['texts'][name].replace('/', '|')}".lstrip("/")
        for one in below:
            visit(one, inside)

    for node in data["tree"]:
        visit(node, "")
    return found


def _needs(data: dict[str, Any]) -> dict[int, list[tuple[str, str]]]:
    """Per op, the reshards and collectives that it needs."""
    found: dict[int, list[tuple[str, str]]] = {}
    for op, tensor, _, sent, *_ in data["conflicts"]:
        found.setdefault(op, []).append((f"reshard of tensor {tensor}", format_bytes(sent)))
    for one in data["collectives"]:
        for op in one["ops"]:
            found.setdefault(op, []).append((one["kind"].replace("_", "-"), one["text"]))
    return found


def _port(data: dict[str, Any], value: int, side: str, edges: list[dict[str, str]]) -> dict[str, Any]:
    names = dict(data["values"]["names"])
    return {
        "id": f"value{value}",
        "label": data["texts"][names[value]],
        "namespace": side,
        "attrs": _attrs(_sharding(data, value)),
        "incomingEdges": edges,
        "outputsMetadata": [_output(data, 0, value)],
    }


def _output(data: dict[str, Any], at: int, value: int) -> dict[str, Any]:
    return {"id": str(at), "attrs": _attrs(_sharding(data, value))}


def _sharding(data: dict[str, Any], value: int) -> list[tuple[str, str]]:
    """The attributes of a value: its shape, which Model Explorer shows on edges, and its sharding."""
    number = data["values"]["tensor"][value]
    if number < 0:
        return []
    tensor = data["tensors"][number]
    return [
        ("tensor_shape", f"{tensor['dtype']}[{', '.join(map(str, tensor['shape']))}]"),
        ("sharding", data["shardings"][tensor["sharding"]]["text"]),
        ("on one device", str(list(tensor["local"]))),
    ]


def _attrs(pairs: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in pairs if value]
