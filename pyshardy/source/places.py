"""Places in source files: their owner, and short forms."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Final, NamedTuple

from pyshardy.core.intern import register_cache
from pyshardy.core.text import named_type
from pyshardy.errors import UsageError
from pyshardy.source.cells import cell_name, file_name

SourcePlace = tuple[str, int, int]
"""File, line and column."""
_SETTING: Final = "setting what counts as the user's code"

_LIBRARY = re.compile(r"(?<![^\\/])(?:site-packages|dist-packages|lib[\\/]python3[.\d]*)[\\/]|^<frozen .*>$")
"""The directories of installed packages and of Python's own modules."""
_INSTALLED = re.compile(r".*(?<![^\\/])(?:site-packages|dist-packages)[\\/](.*)", re.DOTALL)
"""The path of a file in an installed package."""
_PYSHARDY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The directory of pyshardy, which may be a checkout."""
_SEPARATORS = re.compile(r"[\\/]")
_PACKAGE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
LIBRARIES: Final = (
    "jax", "jaxlib", "pyshardy",
    "aqt", "e3nn_jax", "equinox", "flax", "haiku", "haliax", "jraph", "keras", "objax", "penzai", "praxis", "qwix",
    "tokamax", "torch", "torchax",
    "chex", "diffrax", "distrax", "jaxopt", "kfac_jax", "lineax", "numpyro", "optax", "optimistix", "orbax", "quax",
    "rlax", "tensorflow_probability",
    "beartype", "einops", "jaxtyping", "jmp", "ml_dtypes", "numpy", "opt_einsum", "scipy", "typeguard", "wrapt",
)  # fmt: skip
"""The installed packages that a model calls: JAX, layers, optimizers and solvers, and what wraps functions.

A file of another installed package may hold the model itself, so it counts as the user's code.
"""
_USER_CODE: Final = ("pyshardy.examples",)


class _Said(NamedTuple):
    """What the user says of packages, by the parts of their names."""

    library: frozenset[tuple[str, ...]] = frozenset()
    user_code: frozenset[tuple[str, ...]] = frozenset()


_said = _Said()
_BUILT_IN = _Said(*(frozenset(tuple(name.split(".")) for name in names) for names in (LIBRARIES, _USER_CODE)))


def set_user_code(user_code: str | Iterable[str] = (), library: str | Iterable[str] = ()) -> None:
    """Set, for this process, which packages count as the user's own code and which as libraries.

    The source of an op is the innermost line of the user's own code. Libraries are Python's own modules, JAX, the
    packages of layers and optimizers that models call (flax, haiku, equinox, keras, optax, ...) and pyshardy. All
    other files are the user's code, also those of other installed packages.

    Each call replaces what an earlier one set; without arguments, nothing is set. Results that exist keep their lines.

    Args:
        user_code: Packages that count as the user's code, such as "flax.linen".
        library: Packages that count as libraries, such as "maxtext". Of a package and one inside it, the inner one
            decides.

    Raises:
        UsageError: A name is not that of a package, or one package is both.

    >>> place = [("/x/site-packages/maxtext/mlp.py", 41, 8), ("/home/me/train.py", 31, 4)]
    >>> set_user_code(library="maxtext")
    >>> user_place(place)
    ('/home/me/train.py', 31, 4)
    >>> set_user_code()
    >>> user_place(place)
    ('/x/site-packages/maxtext/mlp.py', 41, 8)
    """
    global _said
    said = _Said(_packages(library), _packages(user_code))
    if both := sorted(said.library & said.user_code):
        raise UsageError(_SETTING, got=f"{'.'.join(both[0])} as both", needed="a package as the one or the other")
    _said = said


def said_user_code() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The arguments with which `set_user_code` sets what is set now."""
    user_code, library = (tuple(sorted(map(".".join, found))) for found in (_said.user_code, _said.library))
    return user_code, library


@contextmanager
def user_code_of(user_code: Iterable[str], library: Iterable[str]) -> Iterator[None]:
    """As `set_user_code`, inside of a `with` statement."""
    global _said
    before = _said
    set_user_code(user_code, library)
    try:
        yield
    finally:
        _said = before


def _packages(names: str | Iterable[str]) -> frozenset[tuple[str, ...]]:
    needed = "names of packages, such as 'flax.linen'"
    try:
        found = (names,) if isinstance(names, str) else tuple(names)
    except TypeError as error:
        raise UsageError(_SETTING, got=named_type(names), needed=needed) from error
    for name in found:
        if not isinstance(name, str) or not _PACKAGE.fullmatch(name):
            raise UsageError(_SETTING, got=repr(name), needed=needed)
    return frozenset(tuple(name.split(".")) for name in found)


def is_library(file: str) -> bool:
    """Whether a file is not the user's own code, but that of a library which it calls: see `set_user_code`.

    >>> is_library("/usr/lib/python3.13/site-packages/flax/linen/linear.py"), is_library("/home/me/train.py")
    (True, False)
    """
    return _is_library(file, _said)


@lru_cache(maxsize=1 << 14)
def _is_library(file: str, said: _Said) -> bool:
    own = file.startswith(_PYSHARDY + os.sep)
    installed = _INSTALLED.fullmatch(file)
    inside = f"pyshardy{file[len(_PYSHARDY) :]}" if own else installed[1] if installed else None
    module = tuple(_SEPARATORS.split((file if inside is None else inside).removesuffix(".py")))
    by_user = _decides(said, module, inside is None)
    if by_user is not None:
        return by_user
    if inside is None:
        return _LIBRARY.search(file) is not None
    return _decides(_BUILT_IN, module, False) or False


register_cache(_is_library.cache_clear)


def _decides(said: _Said, module: tuple[str, ...], anywhere: bool) -> bool | None:
    """Whether a module is of a library; None if it is in none of the packages.

    Args:
        said: Packages; of those that the module is in, the one with the longest name decides.
        module: The parts of its path.
        anywhere: Whether packages may be in any directory.
    """
    for length in range(len(module), 0, -1):
        for start in range(len(module) - length + 1 if anywhere else 1):
            part = module[start : start + length]
            if part in said.library or part in said.user_code:
                return part in said.library
    return None


def user_place(frames: Sequence[SourcePlace]) -> SourcePlace | None:
    """The innermost place in the user's own code; without one, the innermost place.

    Args:
        frames: The calls that led to a place, innermost first.

    >>> user_place([("/lib/python3.13/site-packages/flax/linear.py", 287, 1), ("/home/me/train.py", 31, 4)])
    ('/home/me/train.py', 31, 4)
    """
    return next((frame for frame in frames if not is_library(frame[0])), frames[0] if frames else None)


def short_path(file: str, base: str | None = None) -> str:
    """A path relative to the current directory, if that is shorter; for an installed package, the path inside it.

    Args:
        file: The path.
        base: The directory that paths are relative to; by default the current one.

    >>> short_path("/home/me/models/net.py", "/home/me"), short_path("/x/site-packages/flax/linear.py", "/home/me")
    ('models/net.py', 'flax/linear.py')
    """
    if folders := list(_LIBRARY.finditer(file)):
        return file[folders[-1].end() :] if folders[-1].end() < len(file) else file
    if not os.path.isabs(file):
        return file
    try:
        relative = os.path.relpath(file, base)
    except (OSError, ValueError):  # another drive, or a deleted current directory
        return file
    return relative if len(relative) < len(file) else file


def format_place(place: SourcePlace | None, base: str | None = None, only_name: bool = False) -> str:
    """A place in the usual form, `In[3]:14` for a line of a notebook cell; empty without a place.

    Args:
        place: The place.
        base: The directory that paths are relative to; by default the current one.
        only_name: Whether to omit the directories.

    >>> format_place(("/home/me/net.py", 31, 4), "/home/me")
    'net.py:31'
    """
    if place is None:
        return ""
    shown = file_name(place[0]) if only_name else cell_name(place[0]) or short_path(place[0], base)
    return f"{shown}:{place[1]}"
