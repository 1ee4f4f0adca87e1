"""Changes of the user's source, as diffs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from search.patching import apply_patch

import pyshardy
from pyshardy.checkup.kinds.code import _patch, _strided_patch
from pyshardy.checkup.kinds.rules import names_patch
from pyshardy.checkup.patching.returned import given_patch, returned_patch
from pyshardy.checkup.patching.source import jit_call
from pyshardy.core.axes import Dims

from ..diffs import added

DONATE = "donate_argnames=('x',)"


@pytest.mark.parametrize(
    "before, after",
    [
        ("step = jax.jit(f)", "step = jax.jit(f, donate_argnames=('x',))"),
        ("step = jit(f, static_argnums=1)", "step = jit(f, static_argnums=1, donate_argnames=('x',))"),
        ("@jax.jit\ndef f(x): return x", "@jax.jit(donate_argnames=('x',))"),
        ("@partial(jax.jit, static_argnums=1)\ndef f(x): return x",
         "@partial(jax.jit, static_argnums=1, donate_argnames=('x',))"),
        ("step = jax.jit(jax.vmap(f, in_axes=0))", "step = jax.jit(jax.vmap(f, in_axes=0), donate_argnames=('x',))"),
        ("step = jit(functools.partial(f, 3), static_argnums=1)",
         "step = jit(functools.partial(f, 3), static_argnums=1, donate_argnames=('x',))"),
        ("@jax.jit(static_argnums=1)\ndef f(x): return x", "@jax.jit(static_argnums=1, donate_argnames=('x',))"),
    ],
)  # fmt: skip
def test_jit_gets_one_more_argument(file: Path, before: str, after: str) -> None:
    file.write_text(f"{before}\n")
    call = jit_call([str(file)], "f")
    assert call is not None and added(call.patch(DONATE)) == [after]


@pytest.mark.parametrize(
    "before, after",
    [
        ("step = jit(f, donate_argnums=config.donated, inline=True)", [f"step = jit(f, {DONATE}, inline=True)"]),
        ("step = jit(f, donate_argnums=(\n  1,))", []),
    ],
)
def test_what_is_donated_is_said_once(file: Path, before: str, after: list[str]) -> None:
    file.write_text(f"{before}\n")
    call = jit_call([str(file)], "f")
    assert call is not None and added(call.donation_patch(DONATE)) == after


@pytest.mark.parametrize(
    "text", ["step = jax.jit(g)\n", "a = jax.jit(f)\nb = jax.jit(f)\n", "not python at all (\n", "f = f\n"]
)
def test_without_one_place_there_is_no_patch(file: Path, text: str) -> None:
    file.write_text(text)
    assert jit_call([str(file), "no such file.py"], "f") is None


def test_a_function_with_arguments_of_its_own_is_given_the_others(file: Path) -> None:
    file.write_text("def f(c, x, y): return x\nstep = jit(partial(f, 3), in_shardings=(P('a'), rest))\n")
    call = jit_call([str(file)], "f")
    assert call is not None and list(call.ins) == ["x", "y"]


def test_a_constraint_is_left_out(file: Path) -> None:
    file.write_text("y = jax.lax.with_sharding_constraint(x + 1, P('data'))\n")
    assert added(_patch((str(file), 1, 0))) == ["y = x + 1"]
    assert _patch((str(file), 2, 0)) == ""


@pytest.mark.parametrize(
    "helper, line, after",
    [
        ("", "y = jax.lax.with_sharding_constraint(y, P())", "    y = 2 * x"),
        (
            "def pin(a, *b):\n    return jax.lax.with_sharding_constraint(a, P(*b))\n",
            "y = pin(y, 'data')",
            "    y = 2 * x",
        ),
        ("def pin(a, *b):\n    return jax.lax.with_sharding_constraint(a, P(*b))\n", "z = pin(y, 'data')", "    z = y"),
    ],
)
def test_a_line_that_only_constrains_is_removed(file: Path, helper: str, line: str, after: str) -> None:
    text = f"{helper}def f(x):\n    y = 2 * x\n    {line}\n    return y\n"
    file.write_text(text)
    number = text.splitlines().index(f"    {line}") + 1
    diff = _patch((str(file), number, 0))
    lines = "".join(apply_patch(text.splitlines(keepends=True), diff)).splitlines()
    assert lines[lines.index("    return y") - 1] == after and f"    {line}" not in lines


def test_the_only_statement_of_a_block_stays(file: Path) -> None:
    file.write_text("if x:\n    y = jax.lax.with_sharding_constraint(y, P())\n")
    assert added(_patch((str(file), 2, 0))) == ["    y = y"]


@pytest.mark.parametrize(
    "text, outputs, after",
    [
        ("step = jit(f)", {"result": ("x",)}, "step = jit(f, out_shardings=P('x'))"),
        ("step = jit(f, out_shardings=whole)", {"result['a']": ("x",), "result['b']": ("x",)},
         "step = jit(f, out_shardings=P('x'))"),
        ("step = jit(f, out_shardings=(None, None))", {"result[0]['a']": ("x",), "result[0]['b']": (), "result[1]": None},
         "step = jit(f, out_shardings=({'a': P('x'), 'b': P()}, None))"),
        ("step = jit(f, out_shardings=w)", {"result[0].a": ("x",), "result[0].b": (), "result[1]": ()}, None),
        ("step = jit(f, out_shardings=w)", {"result[0][0]": ("x",), "result[0][1]": ()}, None),
        ("step = filter_jit(f)", {"result": ("x",)}, None),
        ("step = jit(f, out_shardings=(\n    a, b))", {"result": ("x",)}, None),
    ],
)  # fmt: skip
def test_outputs_get_shardings(file: Path, text: str, outputs: dict[str, Any], after: str | None) -> None:
    file.write_text(f"from jax.sharding import PartitionSpec as P\n{text}\n")
    dims = {name: None if axes is None else tuple((axis,) for axis in axes) for name, axes in outputs.items()}
    assert added(returned_patch(jit_call([str(file)], "f"), dims)) == ([] if after is None else [after])


@pytest.mark.parametrize(
    "text, returned, after",
    [
        ("params = [{} for _ in range(2)]", "result[0]", "([{'a': P('x'), 'b': P()}] * 2, None)"),
        ("params = ({}, {})", "result[0]", "(({'a': P('x'), 'b': P()}, {'a': P('x'), 'b': P()}), None)"),
        ("def init(): return [{}] * 2\nparams = jax.jit(init, out_shardings=s)(key)", "result[0]",
         "([{'a': P('x'), 'b': P()}] * 2, None)"),
        ("blocks = []\nparams = blocks + [3]", "result[0]", "([{'a': P('x'), 'b': P()}] * 2, None)"),
        ("params = list(made)", "result", "[{'a': P('x'), 'b': P()}] * 2"),
        ("params = {}\nparams = made()", "result[0]", ""),
        ("params = []\nparams = ()", "result[0]", ""),
        ("params = params", "result[0]", ""),
    ],
)  # fmt: skip
def test_lists_and_tuples_are_those_of_the_source(file: Path, text: str, returned: str, after: str) -> None:
    """Their names are alike, and `jax.jit` refuses one for the other."""
    file.write_text(f"from jax.sharding import PartitionSpec as P\n{text}\nstep = jit(f)\n")
    shardings = {f"[{layer}]['{name}']": axes for layer in (0, 1) for name, axes in (("a", (("x",),)), ("b", ()))}
    outputs: dict[str, Dims | None] = {returned + rest: axes for rest, axes in shardings.items()}
    if returned != "result":
        outputs["result[1]"] = None
    replaced = {returned + rest: f"params{rest}" for rest in shardings}
    diff = returned_patch(jit_call([str(file)], "f"), outputs, replaced, [str(file)])
    assert added(diff) == ([f"step = jit(f, out_shardings={after})"] if after else [])


def test_a_list_under_a_key_is_found_by_it(file: Path) -> None:
    file.write_text("from jax.sharding import PartitionSpec as P\np = dict(blocks=[{}])\nstep = jit(f)\n")
    outputs: dict[str, Dims | None] = {"result['blocks'][0]['a']": (("x",),), "result['blocks'][0]['b']": ()}
    diff = returned_patch(jit_call([str(file)], "f"), outputs, {}, [str(file)])
    assert added(diff) == ["step = jit(f, out_shardings={'blocks': [{'a': P('x'), 'b': P()}]})"]


def test_outputs_get_shardings_on_the_mesh_of_the_file(file: Path) -> None:
    file.write_text("import jax\nmesh = jax.make_mesh((8,), ('x',))\nstep = jax.jit(f)\n")
    made = "jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('x'))"
    diff = returned_patch(jit_call([str(file)], "f"), {"result": (("x",),)})
    assert added(diff) == [f"step = jax.jit(f, out_shardings={made})"]
    assert returned_patch(None, {"result": (("x",),)}) == ""


def test_outputs_get_shardings_on_the_mesh_of_the_function(file: Path) -> None:
    method = "class Server:\n    def lowered(self):\n        rows = NamedSharding(self.mesh, P('x'))\n"
    head = "from jax.sharding import NamedSharding, PartitionSpec as P\n"
    file.write_text(f"{head}{method}        return jit(f, out_shardings=(rows, rows))\n")
    outputs: dict[str, Dims | None] = {"result[0]": (("x",),), "result[1]": ((), ("x",))}
    diff = returned_patch(jit_call([str(file)], "f"), outputs, changed=["result[1]"])
    assert added(diff) == ["        return jit(f, out_shardings=(rows, NamedSharding(self.mesh, P(None, 'x'))))"]
    file.write_text(
        f"{head}{method}        cols = NamedSharding(other, P('x'))\n        return jit(f, out_shardings=(rows, cols))\n"
    )
    diff = returned_patch(jit_call([str(file)], "f"), outputs, changed=["result[1]"])
    assert added(diff) == ["        return jit(f, out_shardings=(rows, P(None, 'x')))"]


def test_outputs_get_what_the_arguments_that_they_replace_are_given(file: Path) -> None:
    """Where all of an argument is replaced as it is given; else the axes are written out."""
    jitted = "step = jit(f, in_shardings=(specs, rows), out_shardings=P())"
    file.write_text(
        f"from jax.sharding import PartitionSpec as P\ndef f(params, x): return params, x\nparams = {{}}\n{jitted}\n"
    )
    call = jit_call([str(file)], "f")
    outputs: dict[str, Dims | None] = {"result[0]['a']": (("x",),), "result[0]['b']": (), "result[1]": None}
    replaced = {"result[0]['a']": "params['a']", "result[0]['b']": "params['b']"}
    start = "step = jit(f, in_shardings=(specs, rows), out_shardings="
    diff = returned_patch(call, outputs, replaced, [str(file)], [*replaced])
    assert added(diff) == [f"{start}(specs, None))"]
    diff = returned_patch(call, outputs, replaced, [str(file)], ["result[0]['a']"])
    assert added(diff) == [f"{start}({{'a': P('x'), 'b': P()}}, None))"]


def test_arguments_get_shardings_where_the_function_is_jitted(file: Path) -> None:
    start = "from jax.sharding import PartitionSpec as P\ndef f(model, state, x, y): return x\nrows = P('x')\n"
    file.write_text(f"{start}step = jit(f, in_shardings=(*places, rows, rows))\n")
    call = jit_call([str(file)], "f")
    assert call is not None and call.is_spec("x") and not call.is_spec("model")
    assert added(given_patch(call, {"x": (("x", "y"),)})) == [
        "step = jit(f, in_shardings=(*places, P(('x', 'y')), rows))"
    ]
    assert given_patch(call, {"x": (("y",),), "model": ()}) == ""
    file.write_text(f"{start}step = jit(f, in_shardings=(a, *places, *more))\n")
    call = jit_call([str(file)], "f")
    assert call is not None and not call.ins


def test_one_array_of_an_argument_that_has_one_spec_gets_another(file: Path) -> None:
    start = "from jax.sharding import PartitionSpec as P\ndef f(params, batch): return params\n"
    file.write_text(f"{start}step = jit(f, in_shardings=(P(None, 'x'), P('x')))\n")
    call = jit_call([str(file)], "f")
    assert call is not None and call.is_spec("params") and call.is_spec("batch")
    arrays: dict[str, Dims | None] = {"batch['mask']": (("x",),), "batch['tokens']": (("x", "y"),)}
    assert added(given_patch(call, arrays)) == [
        "step = jit(f, in_shardings=(P(None, 'x'), {'mask': P('x'), 'tokens': P(('x', 'y'))}))"
    ]
    layers: dict[str, Dims | None] = {"params[0].up": (), "params[1].up": (("x",),)}
    assert given_patch(call, layers) == given_patch(call, arrays | {"batch['open']": None}) == ""
    listed: dict[str, Dims | None] = {"params[0]": (), "params[1]": (("x",),)}
    assert given_patch(call, listed, [str(file)]) == ""  # a list or a tuple?
    file.write_text(f"{file.read_text()}params = [a, b]\n")
    assert "in_shardings=([P(), P('x')], P('x'))" in given_patch(call, listed, [str(file)])


def test_outputs_of_a_tree_with_attributes_get_what_is_given_to_the_argument(file: Path) -> None:
    file.write_text(
        "from jax.sharding import PartitionSpec as P\ndef f(state, x): return state, x\n"
        "step = jit(f, in_shardings=(places, rows), out_shardings=(P(), P()))\n"
    )
    outputs: dict[str, Dims | None] = {"result[0].params['a']": (("x",),), "result[0].step": (), "result[1]": ()}
    replaced = {"result[0].params['a']": "state.params['a']", "result[0].step": "state.step"}
    diff = returned_patch(jit_call([str(file)], "f"), outputs, replaced, [str(file)], [*replaced])
    assert added(diff) == ["step = jit(f, in_shardings=(places, rows), out_shardings=(places, P()))"]
    assert returned_patch(jit_call([str(file)], "f"), outputs, replaced, [str(file)], ["result[0].step"]) == ""


def test_a_function_that_another_makes_is_jitted_with_it(file: Path) -> None:
    made = "def make(model):\n    def step(state, x):\n        return state\n    return step\n"
    file.write_text(f"{made}run = jit(make(model), in_shardings=(a, b))\n")
    call = jit_call([str(file)], "step")
    assert call is not None and call.line == 5 and [*call.ins] == ["state", "x"]
    file.write_text(f"{made.replace('return step', 'return state')}run = jit(make(model))\n")
    assert jit_call([str(file)], "step") is None
    other = file.with_name("made.py")
    other.write_text(made)
    file.write_text("from made import make\nrun = jit(make(model), in_shardings=(a, b))\n")
    call = jit_call([str(file), str(other)], "step")
    assert call is not None and call.file == str(file) and [*call.ins] == ["state", "x"]


def test_an_entry_of_an_output_with_the_same_shardings_is_used_again(file: Path) -> None:
    """Where the tree cannot be written out; a tuple on several lines keeps its other entries."""
    jitted = "step = jit(f, out_shardings=(\n    given,\n    whole,\n    None,\n))"
    file.write_text(f"from jax.sharding import PartitionSpec as P\n{jitted}\n")
    tree = {".a": (("x",),), ".b": ()}
    outputs: dict[str, Dims | None] = {f"result[{k}]{name}": dims for k in (0, 1) for name, dims in tree.items()}
    outputs["result[2].c"] = None
    call, new = jit_call([str(file)], "f"), ["result[1].a"]
    assert added(returned_patch(call, outputs, changed=new)) == ["    given,"]
    assert returned_patch(call, {**outputs, "result[0].a": ()}, changed=new) == ""
    assert returned_patch(call, {**outputs, "result[0].a": None, "result[1].a": None}, changed=new) == ""
    assert returned_patch(call, {**outputs, "result[3]": ()}, changed=new) == ""


@pytest.mark.parametrize(
    "before, after",
    [
        ("    return x.reshape(4, -1, *x.shape[1:])", "    return x.reshape(-1, 4, *x.shape[1:]).swapaxes(0, 1)"),
        ("    return x.reshape((4, size, 2))", "    return x.reshape((size, 4, 2)).swapaxes(0, 1)"),
        ("    return x.reshape(shape)", None),
        ("    return x.reshape(*shape, 2)", None),
        ("    return x.reshape(4, 2) + y.reshape(4, 2)", None),
    ],
)
def test_micro_batches_get_every_nth_row(file: Path, before: str, after: str | None) -> None:
    file.write_text(f"def f(x):\n{before}\n")
    assert added(_strided_patch((str(file), 2, 0))) == ([] if after is None else [after])


def test_a_constraint_by_another_name_is_left_out(file: Path) -> None:
    file.write_text("put = jax.lax.with_sharding_constraint\ndef f(x):\n    y = put(x, P())\n    return y\n")
    assert added(_patch((str(file), 3, 0))) == ["    y = x"]
    file.write_text("def f(x, put):\n    return g(put(x, P()))\n")
    assert added(_patch((str(file), 2, 0))) == ["    return g(x)"]
    file.write_text("put = jax.device_put\ndef f(x):\n    y = put(x, P())\n    return y\n")
    assert _patch((str(file), 3, 0)) == ""


@pytest.mark.parametrize(
    "old, new, after",
    [
        ((("data",), (), ("model",)), (("data",), (), ()), '("batch", "time", None)'),
        ((("data",), (), ("model",)), (("data",), ("model",), ()), '("batch", "heads", None)'),
        ((("data",), (), ()), (("data",), (), ("model",)), None),
        ((("data",), (), ("model",)), ((), (), ("data", "model")), None),
    ],
)
def test_names_of_dimensions_are_changed(file: Path, old: Dims, new: Dims, after: str | None) -> None:
    file.write_text(
        'RULES = (("batch", "data"), ("heads", "model"), ("time", None))\n'
        'def f(x):\n    return nn.with_logical_constraint(x, ("batch", "time", "heads"))\n'
    )
    module = pyshardy.load(
        'sdy.mesh @mesh = <["data"=4, "model"=2]>\n'
        f'func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{ %0 = stablehlo.negate %x : tensor<8xf32> loc("{file}":3:0)'
        "\n  return %0 : tensor<8xf32> }"
    )
    found = added(names_patch(module, (str(file), 3, 0), old, new))
    assert found == ([] if after is None else [f"    return nn.with_logical_constraint(x, {after})"])
