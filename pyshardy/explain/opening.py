"""What opens dimensions that are closed: an option, a call, or a spec for the source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote

from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.spec import OPEN, format_spec, write_spec
from pyshardy.explain.explanation import Opening
from pyshardy.explain.names import Names, place_text
from pyshardy.explain.origins import Origin, OriginKind

_PATH = re.compile(r"\w+(?:\.\w+|\[\d+\]|\['\w+'\])*")
_KEY = re.compile(r"\[(?:'(\w+)'|(\d+))\]")
_PORTS = (OriginKind.ARGUMENT, OriginKind.OUTPUT)


def opening(origins: Iterable[Origin], values: Iterable[int], names: Names) -> Opening:
    """What opens dimensions of one annotation.

    Args:
        origins: The annotation, once for every dimension that is to open.
        values: The numbers of the explained values that it keeps whole.
        names: The names of values and ops.
    """
    found = {origin.dim: origin for origin in origins}
    dims = tuple(sorted(found))
    origin, subject = found[dims[0]], names.subject
    sharding = subject.grouped.get(origin.value, subject.program.shardings[origin.value])
    assert sharding is not None
    opened = sharding.with_dims([DimSharding((), True) if at in found else one for at, one in enumerate(sharding.dims)])
    of = f"to open {_dims(dims)} of"
    is_port = origin.kind in _PORTS or origin.value in subject.given
    if origin.kind is OriginKind.CONSTRAINT and origin.op is not None:
        return Opening(
            f"{of} the sharding constraint{place_text(names.label(origin.op))}, {_in_source(opened)}",
            *_at(dims, values),
        )
    if origin.kind is OriginKind.MANUAL:
        return Opening(f"to split {_dims(dims)} of {origin.name}, name an axis there in its specs", *_at(dims, values))
    if not is_port or origin.value not in subject.names:
        return Opening(f"{of} {origin.name}, annotate it as {_in_dialect(opened)}", *_at(dims, values))
    name, spec = port_path(subject.names[origin.value]), _spec(opened, names)
    option = None if "=" in name else f"--shard {_quoted(f'{name}={spec}')}"
    call = f"module.annotate({{{name!r}: {spec!r}}})"
    text = f"{of} {origin.name}, " + (call if option is None else f"give {option}, or in Python {call}")
    return Opening(text, *_at(dims, values), name, spec, option)


def port_path(name: str) -> str:
    """The name of an input or output as `--shard` takes it, with dots instead of brackets where both mean the same.

    >>> port_path("params['layers'][0]['w1']"), port_path("params['a.b']")
    ('params.layers.0.w1', "params['a.b']")
    """
    return _KEY.sub(r".\1\2", name) if _PATH.fullmatch(name) else name


def _at(dims: tuple[int, ...], values: Iterable[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return dims, tuple(dict.fromkeys(values))


def _dims(dims: tuple[int, ...]) -> str:
    *first, last = map(str, dims)
    return f"dimensions {', '.join(first)} and {last}" if first else f"dimension {last}"


def _in_source(sharding: TensorSharding) -> str:
    """What to write in a constraint of JAX, which has no sub-axes, and no open dimension with axes."""
    if all(axis.is_full for axes in sharding.dim_axes for axis in axes):
        return f"write {format_spec(_entry(dim) for dim in sharding.dims)}"
    return "write P.UNCONSTRAINED there"


def _entry(dim: DimSharding) -> tuple[str, ...]:
    return (OPEN,) if dim.is_open and not dim.axes else tuple(axis.name for axis in dim.axes)


def _in_dialect(sharding: TensorSharding) -> str:
    return f"[{', '.join(map(str, sharding.dims))}]"


def _spec(sharding: TensorSharding, names: Names) -> str:
    """A sharding as `--shard` takes it: short where that says the same, else in the notation of the dialect."""
    has_one_mesh = len({mesh for mesh in names.subject.program.meshes.values() if mesh.axes}) == 1
    return (write_spec(sharding) if has_one_mesh else None) or str(sharding)


def _quoted(text: str) -> str:
    """A word of a shell's command line."""
    return f"'{text}'" if "'" not in text else quote(text)
