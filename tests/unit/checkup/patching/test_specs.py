"""Changes of specs in the user's source, as diffs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.checkup.patching.specs import SpecChange, line_patch, spec_patch
from pyshardy.core.axes import Dims

from ..diffs import added


def test_a_spec_is_changed_where_its_name_has_it(file: Path) -> None:
    file.write_text('specs = {"w": P("data", None), "v": P("data")}\nmore = dict(w=P("model"))\n')
    diff = spec_patch([str(file)], [SpecChange("w", (("data",), ()), ((), ("data", "model")))])
    assert added(diff) == ['specs = {"w": P(None, ("data", "model")), "v": P("data")}']
    assert added(spec_patch([str(file)], [SpecChange("w", (("model",),), ())])) == ["more = dict(w=P())"]
    assert spec_patch([str(file)], [SpecChange("w", (("other",),), ())]) == ""


def test_a_spec_at_two_places_or_over_lines_is_left_alone(file: Path) -> None:
    file.write_text('a = {"w": P("data")}\nb = {"w": P("data")}\nc = {"u": P(\n    "x")}\nd = {"t": P(axis)}\n')
    assert spec_patch([str(file)], [SpecChange("w", (("data",),), ())]) == ""
    assert spec_patch([str(file)], [SpecChange("u", (("x",),), ())]) == ""
    assert spec_patch([str(file)], [SpecChange("t", (("x",),), ())]) == ""


def test_specs_of_several_inputs_are_changed_together(file: Path) -> None:
    file.write_text('mean = {"up": P(), "down": P()}\n')
    up, down = SpecChange("mean['up']", (), (("x",),)), SpecChange("mean['down']", (), (("y",),))
    assert added(spec_patch([str(file)], [up, down])) == ['mean = {"up": P("x"), "down": P("y")}']
    assert spec_patch([str(file)], [up, SpecChange("mean['other']", (), (("y",),))]) == ""
    assert spec_patch([str(file)], [up, up._replace(new=(("z",),))]) == ""
    assert spec_patch([str(file)], []) == ""


def test_the_only_spec_for_the_only_input_needs_no_name(file: Path) -> None:
    file.write_text('batch = P(None, "data")\nother = P("data")\n')
    change = SpecChange("images", ((), ("data",)), (("data",),), others=())
    assert added(spec_patch([str(file)], [change])) == ['batch = P("data")']
    assert spec_patch([str(file)], [change._replace(others=None)]) == ""
    file.write_text('batch = P(None, "data")\nother = P(None, "data")\n')
    assert spec_patch([str(file)], [change]) == ""


def test_the_spec_of_a_constraint_is_changed_in_its_line(file: Path) -> None:
    text = 'x = pin(x, P("model"))\ny = pin(x, P("model")) + pin(z, P("model"))\n'
    file.write_text(text)
    old, new = (("model",), ()), (("model",), ("data",))
    assert added(line_patch(str(file), 1, old, new)) == ['x = pin(x, P("model", "data"))']
    assert line_patch(str(file), 2, old, new) == line_patch(str(file), 3, old, new) == ""


def test_the_spec_of_a_call_over_several_lines_is_changed(file: Path) -> None:
    """The value may have a spec of its own."""
    file.write_text('x = with_sharding_constraint(\n    gate(x, P("model")),\n    P("model"),\n)\n')
    old, new = (("model",), ()), (("model",), ("data",))
    diff = line_patch(str(file), 1, old, new)
    assert added(diff) == ['    P("model", "data"),'] and '-    P("model"),' in diff


@pytest.mark.parametrize(
    "line, after",
    [
        ('x = put(x, "data")', 'x = put(x, "data", None, "model")'),
        ('x = put(x + 1, "data", None)', 'x = put(x + 1, "data", None, "model")'),
        ('x = put(x, "model")', None),
        ("x = put(x, axis)", None),
        ('x = put(x, "data") + put(y, "data")', None),
        ('x = given(x, "data")', None),
    ],
)
def test_the_axes_that_a_helper_is_given_are_changed(file: Path, line: str, after: str | None) -> None:
    helpers = "".join(
        f"def {name}(x, *axes):\n    return jax.lax.with_sharding_constraint(x, {spec})\n"
        for name, spec in (("put", "NamedSharding(mesh, P(*axes))"), ("given", "rules(axes)"))
    )
    file.write_text(f"{helpers}{line}\n")
    old, new = (("data",), (), ()), (("data",), (), ("model",))
    diff = line_patch(str(file), 5, old, new)
    assert added(diff) == ([] if after is None else [after])


def test_a_helper_that_was_given_no_axes_gets_some(file: Path) -> None:
    file.write_text("def put(x, *axes):\n    return with_sharding_constraint(x, P(*axes))\nx = put(x)\n")
    diff = line_patch(str(file), 3, ((), ()), (("data",), ()))
    assert added(diff) == ["x = put(x, 'data')"]


FLAX = """\
class Block(nnx.Module):
    def __init__(self, rngs):
        self.up = nnx.Linear(8, 16, kernel_init=nnx.with_partitioning(init, (None, "model")), rngs=rngs)
        self.down = nnx.Linear(16, 8, kernel_init=nnx.with_partitioning(init, (None, "model")), rngs=rngs)
        self.out = nnx.Linear(16, 8, kernel_metadata={"sharding_names": ("data", None)}, rngs=rngs)
        self.gate = nn.Dense(16, kernel_init=nn.with_partitioning(init, ("model",)), name="gate")
"""


@pytest.mark.parametrize(
    "name, old, new, after",
    [
        ("model.layers[0].down.kernel.value", ((), ("model",)), (("model",), ()), "self.down = nnx.Linear(16, 8, "
         "kernel_init=nnx.with_partitioning(init, (\"model\", None)), rngs=rngs)"),
        ("model.out.kernel.value", (("data",), ()), ((), ("data", "model")), "self.out = nnx.Linear(16, 8, "
         "kernel_metadata={\"sharding_names\": (None, (\"data\", \"model\"))}, rngs=rngs)"),
        ("params['gate']['kernel']", (("model",),), (), 'self.gate = nn.Dense(16, '
         'kernel_init=nn.with_partitioning(init, (None,)), name="gate")'),
    ],
)  # fmt: skip
def test_axes_in_a_tuple_of_flax_are_changed(file: Path, name: str, old: Dims, new: Dims, after: str) -> None:
    file.write_text(FLAX)
    assert [line.strip() for line in added(spec_patch([str(file)], [SpecChange(name, old, new)]))] == [after]


def test_a_spec_for_another_name_is_left_alone(file: Path) -> None:
    file.write_text(FLAX)
    assert spec_patch([str(file)], [SpecChange("model.up.bias.value", ((), ("model",)), ())]) == ""
    assert (
        spec_patch([str(file)], [SpecChange("model.kernel.value", ((), ("model",)), ())]) == ""
    )  # that of up and that of down


def test_a_table_of_patterns_is_changed_where_one_fits(file: Path) -> None:
    file.write_text('layout[".*up/kernel"] = (None, "model")\nlayout[".*down/kernel"] = (None, "model")\n')
    diff = spec_patch([str(file)], [SpecChange("model['net/down/kernel']", ((), ("model",)), (("model",), ()))])
    assert added(diff) == ['layout[".*down/kernel"] = ("model", None)']


def test_a_variable_that_is_for_outputs_too_is_changed_where_it_is_made(file: Path) -> None:
    made = "heads = P('model')\npools = array((8, 4), heads)\nstep = jit(f, out_shardings=(None, [on(heads)] * 2))\n"
    change = SpecChange("pools[0]", (("model",),), ((), ("model",)), ())
    file.write_text(made)
    assert added(spec_patch([str(file)], [change])) == ["heads = P(None, 'model')"]
    file.write_text(f"{made}more = array((8, 4), heads)\n")
    assert added(spec_patch([str(file)], [change])) == ["pools = array((8, 4), P(None, 'model'))"]


def test_specs_are_found_in_several_files(file: Path) -> None:
    other = file.parent / "weights.py"
    file.write_text("pool_spec = P('x')\n")
    other.write_text(
        "w = dict(up=Weight((8, 4), ('x', None)), down=Weight((4, 8), (None, 'x')), mesh=make_mesh((8,), ('x',)))\n"
    )
    pool, down = (
        SpecChange("pools[0]", (("x",),), ((), ("x",)), ("w['up']",)),
        SpecChange("w['down']", ((), ("x",)), (("x",),)),
    )
    files = [str(file), str(other)]
    assert added(spec_patch(files, [pool])) == ["pool_spec = P(None, 'x')"]  # ('x', None) is that of `up`
    assert spec_patch(files, [pool._replace(others=("w['wide']",))]) == ""  # which one is that of `wide`?
    assert added(spec_patch(files, [pool, down])) == [
        "pool_spec = P(None, 'x')",
        "w = dict(up=Weight((8, 4), ('x', None)), down=Weight((4, 8), ('x', None)), mesh=make_mesh((8,), ('x',)))",
    ]


def test_axes_that_a_function_hands_on_are_changed(file: Path) -> None:
    """They are arguments of a function that makes a spec of them; one that constrains makes no spec of an input."""
    file.write_text(
        "def array(shape, *spec, dtype=f32): return S(shape, dtype, sharding=on(P(*spec)))\n"
        "def put(x, *spec):\n    return jax.lax.with_sharding_constraint(x, P(*spec))\n"
        'x = put(x, "model")\n'
        'w = {"up": array((8, 8), "model", dtype=bf16), "scale": array((8,))}\n'
    )
    up, scale = (
        SpecChange("w['up']", (("model",), ()), (("data",), ("model",))),
        SpecChange("w['scale']", ((),), (("data",),)),
    )
    assert added(spec_patch([str(file)], [up])) == [
        'w = {"up": array((8, 8), "data", "model", dtype=bf16), "scale": array((8,))}'
    ]
    assert added(spec_patch([str(file)], [scale])) == [
        'w = {"up": array((8, 8), "model", dtype=bf16), "scale": array((8,), "data")}'
    ]
    assert spec_patch([str(file)], [SpecChange("x", (("model",),), (("data",),))]) == ""


def test_axes_that_a_function_hands_to_flax_are_changed(file: Path) -> None:
    file.write_text(
        "def linear(size, axes, rngs):\n    return nnx.Linear(size, kernel_init=nnx.with_partitioning(init, axes))\n"
        'self.up = linear(8, ("model", None), rngs)\n'
    )
    change = SpecChange("model.up.kernel.value", (("model",), ()), ((), ("model",)))
    assert added(spec_patch([str(file)], [change])) == ['self.up = linear(8, (None, "model"), rngs)']
    assert spec_patch([str(file)], [change._replace(name="model.up.bias.value")]) == ""


def test_a_layout_map_gets_an_entry(file: Path) -> None:
    """Keras shards the optimizer state of a variable as the variable, so that needs none."""
    file.write_text(
        'layout = keras.distribution.LayoutMap(mesh)\nlayout["net_.*/up/kernel"] = (None, "model")\nfit()\n'
    )
    paths = [f"net_{layer}/down/kernel" for layer in (0, 1)]
    down = [SpecChange(path, ((), ()), (("model",), ()), path=path) for path in paths]
    state = SpecChange("optimizer['adam/net_0_down_kernel_momentum']", ((), ()), (("model",), ()))
    diff = spec_patch([str(file)], [*down, state])
    assert added(diff) == ['layout["net_.*/down/kernel"] = ("model", None)']
    assert spec_patch([str(file)], [down[0], down[1]._replace(new=((), ("model",)))]) == ""
    assert spec_patch([str(file)], [SpecChange("x", ((),), (("model",),))]) == ""
