"""The lines that commands show: those of the model, wherever it is installed, and how to say otherwise."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import pyshardy

from .command_line import Cli
from .opt_command_line import Put

SITE = "/venv/lib/python3.13/site-packages"
MODEL = f"""
sdy.mesh @mesh = <["data"=4, "model"=2]>
#layer = loc("{SITE}/flax/linen/linear.py":287:8)
#model = loc("{SITE}/mymodel/mlp.py":41:8)
#user = loc("/home/me/launch.py":16:4)
#calls = loc(callsite(#layer at callsite(#model at #user)))
#down = loc("jit(step)/jvp(decoder)/mlp/down/dot_general"(#calls))
func.func @main(%x: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{"model"}}]>}},
                %w: tensor<64x16xf32>) -> tensor<32x16xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<32x64xf32>, tensor<64x16xf32>) -> tensor<32x16xf32> loc(#down)
  return %0 : tensor<32x16xf32>
}}
"""
INNER, OUTER, LAYER = "mlp.py:41", "launch.py:16", "linear.py:287"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), INNER),
        (("--library", "mymodel"), OUTER),
        (("--user-code", "flax"), LAYER),
        (("--library", "mymodel", "--user-code", "mymodel.mlp"), INNER),
        (("--library", "optax", "--library", "mymodel"), OUTER),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("partition",),
        ("explain", "--collectives"),
        ("explain", "dot_general"),
        ("show", "--values", "dot_general"),
        ("cost", "--hardware", "h100"),
        ("diff", "--edit", "arg0=data"),
    ],
    ids=" ".join,
)
def test_every_command_names_the_line_of_the_model(
    command: tuple[str, ...], options: tuple[str, ...], expected: str, cli: Cli, put: Put,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("COLUMNS", "120")
    name, *rest = command
    found = cli(name, put(MODEL), *rest, *options)
    assert found.status == 0, found
    assert {place for place in (INNER, OUTER, LAYER) if place in found.out} - {LAYER} == {expected} - {LAYER}
    assert expected in found.out
    assert "mlp/down" in found.out  # the scope is beside it


def test_the_page_names_the_line_of_the_model(cli: Cli, put: Put, tmp_path: Path) -> None:
    pages = []
    for options in ((), ("--library", "mymodel")):
        page = tmp_path / f"{len(options)}.html"
        assert cli("report", put(MODEL), "-o", page, *options).status == 0
        pages.append(page.read_text())
    assert "mymodel/mlp.py" in pages[0] and "launch.py" not in pages[0]
    assert "launch.py" in pages[1]


def test_a_setting_ends_with_its_command(cli: Cli, put: Put) -> None:
    path = put(MODEL)
    assert OUTER in cli("partition", path, "--library", "mymodel").out
    assert OUTER not in cli("partition", path).out


def test_what_is_no_package_is_refused(cli: Cli, put: Put) -> None:
    found = cli("partition", put(MODEL), "--library", "my/model")
    assert (found.status, found.out) == (2, "")
    assert found.err == (
        "error: setting what counts as the user's code: got 'my/model', needed names of packages, such as "
        "'flax.linen'\n"
    )


@pytest.mark.slow
def test_the_example_has_lines_of_its_own(cli: Cli) -> None:
    found = json.loads(
        cli("partition", "example", "--layers", "1", "--width", "64", "--vocabulary", "64", "--json").out
    )
    files = {row["user_source"][0] for row in found["traffic"]["collectives"]}
    assert files == {str(Path(pyshardy.__file__).parent / "examples" / "transformer.py")}
    assert len({row["user_source"][1] for row in found["traffic"]["collectives"]}) > 3


STEP = """
import jax.numpy as jnp
def mlp(w, x):
    h = jnp.tanh(x @ w["up"])
    return h @ w["down"]
def step(w, x):
    return jnp.mean(mlp(w, x) ** 2)
"""


def test_the_lines_of_a_model_that_pip_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import jax

    package = tmp_path / "site-packages" / "some_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(STEP)
    monkeypatch.syspath_prepend(str(package.parent))
    import some_model  # type: ignore[import-not-found]

    monkeypatch.delitem(sys.modules, "some_model")
    w = {"up": jax.ShapeDtypeStruct((64, 256), "float32"), "down": jax.ShapeDtypeStruct((256, 64), "float32")}
    x = jax.ShapeDtypeStruct((32, 64), "float32")
    shardings = {"up": pyshardy.PartitionSpec(None, "model"), "down": pyshardy.PartitionSpec("model")}
    load = lambda: pyshardy.load(  # noqa: E731
        some_model.step, w, x, mesh={"data": 4, "model": 2}, in_shardings=(shardings, pyshardy.PartitionSpec("data"))
    )
    assert _lines(load()) == {(str(package / "__init__.py"), 5), (str(package / "__init__.py"), 7)}
    try:
        pyshardy.set_user_code(library="some_model")
        assert {file for file, _ in _lines(load())} == {__file__}
    finally:
        pyshardy.set_user_code()


def _lines(module: pyshardy.Module) -> set[tuple[str, int]]:
    places = [row.place for row in pyshardy.partition(module).traffic.collectives]
    return {place[:2] for place in places if place is not None}
