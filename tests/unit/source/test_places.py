"""Places in source files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pyshardy.errors import UsageError
from pyshardy.source.places import (
    LIBRARIES,
    format_place,
    is_library,
    set_user_code,
    short_path,
    user_code_of,
    user_place,
)

FLAX = ("/home/me/.venv/lib/python3.13/site-packages/flax/linen/linear.py", 287, 8)
USER = ("/home/me/train.py", 31, 4)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        (FLAX[0], True),
        ("/usr/lib/python3/dist-packages/jax/numpy.py", True),
        ("/usr/lib/python3.11/functools.py", True),
        ("C:\\venv\\Lib\\site-packages\\flax\\linear.py", True),
        ("<frozen runpy>", True),
        ("/venv/lib/python3.13/site-packages/jaxlib/mlir/ir.py", True),
        ("/venv/lib/python3.13/site-packages/haiku/_src/basic.py", True),
        ("/venv/lib/python3.13/site-packages/equinox/nn/_linear.py", True),
        ("/venv/lib/python3.13/site-packages/keras/src/backend/jax/numpy.py", True),
        ("/venv/lib/python3.13/site-packages/optax/_src/transform.py", True),
        ("/venv/lib/python3.13/site-packages/einops.py", True),
        ("/venv/lib/python3.13/site-packages/pyshardy/api.py", True),
        ("/venv/lib/python3.13/site-packages/pyshardy/examples/transformer.py", False),
        ("/venv/lib/python3.13/site-packages/maxtext/layers/linears.py", False),
        ("/venv/lib/python3.13/site-packages/flaxmodels/gpt2.py", False),
        ("/venv/lib/python3.13/site-packages/mymodel/flax/layers.py", False),
        ("/venv/lib/python3.13/site-packages/model.py", False),
        ("C:\\venv\\Lib\\site-packages\\maxtext\\layers\\linears.py", False),
        (USER[0], False),
        ("/home/me/lib/net.py", False),
        ("/home/me/flax/net.py", False),
        ("model.mlir", False),
        ("<stdin>", False),
        ("/tmp/ipykernel_12/3.py", False),
    ],
)
def test_what_a_model_calls_is_a_library_and_the_model_is_not(file: str, expected: bool) -> None:
    assert is_library(file) is expected


def test_the_innermost_line_of_the_user_counts() -> None:
    outer = ("/home/me/main.py", 9, 1)
    assert user_place([FLAX, ("<frozen runpy>", 1, 1), USER, outer]) == USER
    assert user_place([USER, FLAX]) == USER
    assert user_place([FLAX, FLAX]) == FLAX
    assert user_place([]) is None


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        (FLAX[0], "flax/linen/linear.py"),
        (USER[0], "train.py"),
        ("/home/me/models/net.py", "models/net.py"),
        ("/home/you/net.py", "../you/net.py"),
        ("/a.py", "/a.py"),
        ("model.mlir", "model.mlir"),
        ("-", "-"),
        ("<frozen runpy>", "<frozen runpy>"),
    ],
)
def test_paths_are_relative_to_where_the_user_is(file: str, shown: str) -> None:
    assert short_path(file, "/home/me") == shown


def test_a_directory_that_is_gone_leaves_paths_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getcwd", lambda: (_ for _ in ()).throw(FileNotFoundError()))
    assert short_path(USER[0]) == USER[0]


def test_places_in_words() -> None:
    assert format_place(USER, "/home/me") == "train.py:31"
    assert format_place(("/home/me/models/net.py", 3, 1), "/home/me", only_name=True) == "net.py:3"
    assert format_place(("/x/site-packages/mymodel/__init__.py", 3, 1), only_name=True) == "mymodel/__init__.py:3"
    assert format_place(None) == ""


def test_pyshardy_itself_is_nobodys_own_code_wherever_it_is() -> None:
    import pyshardy

    own = str(Path(pyshardy.__file__).parent / "api" / "load.py")
    assert is_library(own)
    assert user_place([(own, 84, 1), USER]) == USER
    assert not is_library(str(Path(pyshardy.__file__).parents[1] / "train.py"))
    assert not is_library(str(Path(pyshardy.__file__).parent / "examples" / "transformer.py"))


# What the user says


@pytest.fixture
def unset() -> Iterator[None]:
    """Forgets what a test has set."""
    yield
    set_user_code()


MODEL = ("/venv/lib/python3.13/site-packages/maxtext/models/llama.py", 41, 8)
LAYER = ("/venv/lib/python3.13/site-packages/maxtext/layers/linears.py", 12, 4)
FRAMES = [FLAX, LAYER, MODEL, USER]


@pytest.mark.usefixtures("unset")
@pytest.mark.parametrize(
    ("user_code", "library", "expected"),
    [
        ((), (), LAYER),
        ((), "maxtext", USER),
        ((), ["maxtext.layers"], MODEL),
        ("maxtext.models", "maxtext", MODEL),
        ("flax.linen", (), FLAX),
        ("flax", "flax.linen", LAYER),
        ((), ("maxtext", "flax"), USER),
        ((), ("maxtext.layer", "layers", "axtext"), LAYER),
        ((), ("train", "maxtext"), FLAX),
        (("flax.linen.linear",), (), FLAX),
    ],
)
def test_the_user_says_what_counts(
    user_code: str | Sequence[str], library: str | Sequence[str], expected: tuple[str, int, int]
) -> None:
    set_user_code(user_code, library)
    assert user_place(FRAMES) == expected
    set_user_code()
    assert user_place(FRAMES) == LAYER


@pytest.mark.usefixtures("unset")
def test_a_package_that_is_not_installed_is_found_in_any_directory() -> None:
    set_user_code(library=["layers", "common.blocks"])
    assert is_library("/home/me/src/layers/dense.py") and is_library("layers/dense.py")
    assert is_library("C:\\me\\common\\blocks.py")
    assert not is_library("/home/me/src/common/dense.py") and not is_library("/home/me/my_layers/dense.py")


def test_inside_of_a_with_statement() -> None:
    with pytest.raises(KeyError), user_code_of(["flax"], ["maxtext"]):
        assert user_place(FRAMES) == FLAX
        raise KeyError
    assert user_place(FRAMES) == LAYER


@pytest.mark.parametrize(
    ("user_code", "library", "message"),
    [
        ((), "max-text", "got 'max-text', needed names of packages, such as 'flax.linen'"),
        ((), ["/x/maxtext"], "got '/x/maxtext', needed names of packages, such as 'flax.linen'"),
        ("", (), "got '', needed names of packages, such as 'flax.linen'"),
        ([3], (), "got 3, needed names of packages, such as 'flax.linen'"),
        (3, (), "got an int, needed names of packages, such as 'flax.linen'"),
        ("flax.linen", ["flax.linen"], "got flax.linen as both, needed a package as the one or the other"),
    ],
)
def test_what_is_no_package_is_refused(user_code: Any, library: Any, message: str) -> None:
    with pytest.raises(UsageError) as error:
        set_user_code(user_code, library)
    assert str(error.value) == f"setting what counts as the user's code: {message}"
    assert user_place(FRAMES) == LAYER


def test_the_libraries_are_named_on_the_page() -> None:
    page = (Path(__file__).parents[3] / "docs/explanations.md").read_text()
    assert [name for name in LIBRARIES if f"`{name}`" not in page] == []
