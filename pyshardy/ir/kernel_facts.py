"""What a custom call says of the kernel that it runs: its name, and the cost that the kernel's author states.

Kernels of Pallas have both: JAX writes the argument `name`, and `cost_estimate` of `pallas_call`, beside the kernel.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from pyshardy.costing.host_memory import PLACEMENT
from pyshardy.costing.program import KERNEL_CAUSAL, KERNEL_COST, KERNEL_NAME
from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import check_names, string_of

_CONFIG = "backend_config"
_STATED = re.compile(r'"cost_estimate": ?(\{[^{}]*\})')
_CAUSAL = re.compile(r'"mask_type": ?"(?:PADDING_)?CAUSAL"')
"""How a call of cuDNN says that later positions are not read."""
_STATED_JSON = "cost_estimate_json"
_PLACE = "_xla_buffer_placement"
_MOVES = {"MoveToHost": "host", "MoveToDevice": "device"}
"""What XLA makes of JAX's calls."""
_FIGURES = ("flops", "transcendentals", "bytes_accessed")


def kernel_facts(op: Op) -> Iterator[tuple[str, Any]]:
    """The name of the kernel, and its cost, as far as a custom call states them.

    The cost is a tuple of operations, evaluations of functions such as the exponential, and bytes read and written.
    """
    placement = _placement(op)
    if placement:
        yield PLACEMENT, placement
        return
    config = op.attrs.get(_CONFIG)
    name, stated = string_of(op.attrs.get("kernel_name")), None
    if isinstance(config, ir.DictAttr):
        check_names(config)
        name = name or (string_of(config["name"]) if "name" in config else None)
        stated = string_of(config[_STATED_JSON]) if _STATED_JSON in config else None
    elif isinstance(config, ir.StringAttr):
        text = string_of(config) or ""
        match = _STATED.search(text)
        stated = None if match is None else match[1]
        if _CAUSAL.search(text):
            yield KERNEL_CAUSAL, True
    if name:
        yield KERNEL_NAME, name
    cost = None if stated is None else stated_cost(stated)
    if cost is not None:
        yield KERNEL_COST, cost


def _placement(op: Op) -> str:
    """Where a custom call moves its operand: "host" or "device"; empty for any other call."""
    target = string_of(op.attrs.get("call_target_name")) or ""
    if target in _MOVES:
        return _MOVES[target]
    attributes = op.attrs.get("mhlo.frontend_attributes") if target == "annotate_device_placement" else None
    return "" if attributes is None else "host" if "host" in str(attributes[_PLACE]) else "device"


def stated_cost(text: str) -> tuple[float, float, float] | None:
    """The cost that JSON states; None if it has none.

    >>> stated_cost('{"bytes_accessed": 64, "flops": 1000, "transcendentals": 0, "remote_bytes_transferred": 0}')
    (1000.0, 0.0, 64.0)
    >>> stated_cost('{"flops": "many"}') is None
    True
    """
    try:
        found = json.loads(text)
    except ValueError:
        return None
    given = [found.get(name) for name in _FIGURES] if isinstance(found, dict) else []
    figures = [float(one) for one in given if isinstance(one, int | float) and one >= 0]
    if len(figures) != len(_FIGURES):
        return None
    flops, transcendentals, moved = figures
    return flops, transcendentals, moved
