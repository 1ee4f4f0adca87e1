"""Reads MaxText's golden files of named shardings as locks of inputs.

`tests/utils/sharding_info/MODEL/TOPOLOGY/slice_N/.../named_shardings.json` of MaxText is an object. Its keys are paths
in the state of a training step, the parts joined by slashes; a value has the mesh (`axis_names`, and `shape` by axis),
the `partition_spec` (per dimension null, an axis, or a list of axes), and in newer files the `shape`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from pyshardy.core.spec import format_spec
from pyshardy.errors import UsageError
from pyshardy.report.lock import LOCK_VERSION, Lock, LockedMesh, LockedTensor, folded
from pyshardy.report.specs import REPLICATED

_DOING = "reading a lock of MaxText"
_NEEDED = "named_shardings.json: for every path a mesh, a partition_spec and perhaps a shape"
_BETWEEN = re.compile(r"/(?=[.\[])")
"""The slash between two parts of a path, which begin with a dot or a bracket."""


def lock_of_maxtext(text: str, name: str) -> Lock:
    """The lock of inputs in the text of a golden file.

    Args:
        text: The text.
        name: The name of the file, for errors.

    Raises:
        UsageError: The text is not that of a golden file of named shardings.

    >>> entry = '{"mesh": {"axis_names": ["fsdp"], "shape": {"fsdp": 8}}, "partition_spec": [["fsdp"], null]}'
    >>> lock = lock_of_maxtext('{".params/[\\'w\\']": ' + entry + "}", "golden.json")
    >>> lock.inputs[0].name, lock.inputs[0].sharding, lock.meshes[0].axes
    (".params['w']", "P('fsdp')", 'fsdp=8')
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        _refuse(name, "text that is neither TOML nor JSON")
        raise AssertionError from error
    if not isinstance(data, Mapping) or not data:
        _refuse(name, "JSON without entries")
    if any(isinstance(entry, Mapping) and "mesh" not in entry for entry in data.values()):
        _refuse(name, "entries without a mesh, such as those of logical axes")
    sizes: dict[str, int] = {}
    rows = []
    for path, entry in data.items():
        found, row = _row(path, entry, name)
        if sizes and found != sizes:
            _refuse(f"{name}, {path}", "another mesh than before it")
        sizes = found
        rows.append(row)
    axes = ", ".join(f"{axis}={size}" for axis, size in sizes.items())
    return Lock(
        version=LOCK_VERSION,
        program="the state of MaxText's training step",
        pyshardy="",
        jaxlib="",
        covers="inputs",
        meshes=(LockedMesh("mesh", axes),) if axes else (),
        inputs=folded(rows),
    )


def _row(path: str, entry: Any, name: str) -> tuple[dict[str, int], LockedTensor]:
    """The sizes of the mesh without axes of size 1, and the tensor."""
    where = f"{name}, {path}"
    try:
        mesh, spec, shape = entry["mesh"], entry["partition_spec"], entry.get("shape")
        sizes = {axis: mesh["shape"][axis] for axis in mesh["axis_names"]}
        axes = [list(_axes(one)) for one in spec]
        fits = all(type(size) is int and size > 0 for size in [*sizes.values(), *(size + 1 for size in shape or ())])
    except (KeyError, TypeError, AttributeError, ValueError):
        _refuse(where, "an entry of another form")
    if not fits or any(axis not in sizes for dim in axes for axis in dim):
        _refuse(where, "sizes that are no numbers, or an axis that the mesh does not have")
    kept = [[axis for axis in dim if sizes[axis] > 1] for dim in axes]
    text = format_spec(kept) if any(kept) else REPLICATED
    tensor = "" if shape is None else f"[{', '.join(map(str, shape))}]"
    return {axis: size for axis, size in sizes.items() if size > 1}, LockedTensor(_BETWEEN.sub("", path), tensor, text)


def _axes(entry: Any) -> Iterator[str]:
    """The axes of a dimension."""
    for axis in [] if entry is None else [entry] if isinstance(entry, str) else entry:
        if not isinstance(axis, str):
            raise ValueError
        yield axis


def _refuse(where: str, got: str) -> NoReturn:
    raise UsageError(_DOING, where=where, got=got, needed=_NEEDED)
