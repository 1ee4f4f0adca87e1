"""Shardings by the names of inputs and outputs."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError, UsageError
from pyshardy.frontend.annotate import as_spec, core_mesh, matching_names, with_mesh
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.shardings import module_meshes

MESH = {"data": 4, "model": 2}
W, X = jax.ShapeDtypeStruct((16, 16), np.float32), jax.ShapeDtypeStruct((8, 16), np.float32)
PARAMS = {"layers": [{"w1": W, "w2": W} for _ in range(2)], "out.w": W}


def step(params, x):
    for layer in params["layers"]:
        x = x @ layer["w1"] @ layer["w2"]
    return {"y": x @ params["out.w"], "loss": x.sum()}


@pytest.fixture(scope="module")
def module() -> pyshardy.Module:
    return pyshardy.load(step, PARAMS, X, mesh=MESH)


def ins(module: pyshardy.Module) -> dict[str, str]:
    return {tensor.name: str(tensor.sharding) for tensor in input_tensors(module.root) if tensor.sharding is not None}


NAMES = [
    "params['layers'][0]['w1']",
    "params['layers'][0]['w2']",
    "params['layers'][10]['w1']",
    "params['out.w']",
    "model.layers[0].weight",
    "x",
    "x2",
]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("params['layers'][*]['w1']", [0, 2]),
        ('params["layers"][0]["w1"]', [0]),
        ("params['layers'][1]", None),
        ("params['layers'][10]", [2]),
        ("params.layers.*.w1", [0, 2]),
        ("params.*.w1", [0, 2]),
        ("params.*", [0, 1, 2, 3]),
        ("params", [0, 1, 2, 3]),
        ("params[*]['w1']", None),
        ("params['layers'][*][*]", [0, 1, 2]),
        ("params['out.w']", [3]),
        ("params['out*']", [3]),
        ("model.layers[*].weight", [4]),
        ("*.weight", [4]),
        ("*w*", [0, 1, 2, 3, 4]),
        ("x", [5]),
        ("x*", [5, 6]),
        ("*", [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_globs(pattern: str, found: list[int] | None) -> None:
    if found is None:
        with pytest.raises(UsageError, match="which matches no input or output"):
            matching_names(pattern, NAMES)
    else:
        assert matching_names(pattern, NAMES) == found


def test_every_name_stands_for_itself() -> None:
    for position, name in enumerate(NAMES):
        assert matching_names(name, NAMES) == [position]


def test_an_unknown_name_has_nearest_ones(module: pyshardy.Module) -> None:
    with pytest.raises(
        UsageError, match=r"got \"params\['layer'\]\[0\]\['w1'\]\", which .* needed one of params\['layers'\]\[0\]"
    ):
        module.annotate({"params['layer'][0]['w1']": P("data")})
    with pytest.raises(UsageError, match=r"got 'qq', .*needed one of params\['layers'\]\[0\]\['w1'\], .*x, result"):
        module.annotate({"qq": P("data")})


def test_what_is_no_dictionary_is_refused(module: pyshardy.Module) -> None:
    with pytest.raises(UsageError, match="annotating a module: got a list, needed a dictionary of shardings by name"):
        module.annotate(["x"])  # type: ignore[arg-type]


def test_annotations_of_all_kinds(module: pyshardy.Module) -> None:
    mesh = AbstractMesh((4, 2), ("data", "model"))
    found = module.annotate(
        {
            "params['layers'][*]['w1']": P(None, "model"),
            "params['layers'][0]['w2']": NamedSharding(mesh, P("model")),
            "params['layers'][1]['w2']": pyshardy.PartitionSpec("model", "?", priorities=(1,)),
            "params['out.w']": parse_sharding('<@mesh, [{"data":(1)2, ?}, {}], replicated={"model"}>'),
            "x": "data,?",
            "result['y']": '[{"data"}p0, {?}]',
            "result['loss']": P(unreduced={"model", "data"}),
        }
    )
    assert ins(found) == {
        "params['layers'][0]['w1']": '<@mesh, [{}, {"model"}]>',
        "params['layers'][0]['w2']": '<@mesh, [{"model"}, {}]>',
        "params['layers'][1]['w1']": '<@mesh, [{}, {"model"}]>',
        "params['layers'][1]['w2']": '<@mesh, [{"model"}p1, {?}]>',
        "params['out.w']": '<@mesh, [{"data":(1)2, ?}, {}], replicated={"model"}>',
        "x": '<@mesh, [{"data"}, {?}]>',
    }
    outs = {tensor.name: str(tensor.sharding) for tensor in output_tensors(found.root)}
    assert outs == {
        "result['y']": '<@mesh, [{"data"}p0, {?}]>',
        "result['loss']": '<@mesh, [], unreduced={"data", "model"}>',
    }
    assert ins(module) == {}
    found.verify()


def test_the_last_one_counts_and_none_takes_away(module: pyshardy.Module) -> None:
    found = module.annotate({"*": P(), "params": P("data"), "params['out.w']": P("model"), "result": None, "x": None})
    assert set(ins(found).values()) == {'<@mesh, [{"data"}, {}]>', '<@mesh, [{"model"}, {}]>'}
    assert "x" not in ins(found)
    assert ins(found.annotate({"*": None})) == {}


def test_the_signature_survives(module: pyshardy.Module) -> None:
    found = module.annotate({"x": P("data"), "params.*.w1": P(None, "model")})
    assert found.origin is module.origin
    result = pyshardy.propagate(found)
    assert result.in_specs[0]["layers"][0] == {"w1": P(None, "model"), "w2": P("model", None)}
    assert result.out_specs["y"] == P("data", None)


def test_a_module_that_is_text() -> None:
    text = "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
    module = pyshardy.load(text)
    with pytest.raises(
        UsageError, match=r"(?s)finding the mesh of a PartitionSpec: got a module without a mesh.*mesh="
    ):
        module.annotate({"arg0": P("data")})
    for mesh in (MESH, "data=4,model=2", Mesh(MESH.items()), AbstractMesh((4, 2), ("data", "model"))):
        assert ins(pyshardy.annotate(module, {"arg0": P("data")}, mesh)) == {"arg0": '<@mesh, [{"data"}]>'}
    named = NamedSharding(AbstractMesh((4, 2), ("data", "model")), P("model"))
    assert ins(module.annotate({"arg0": named})) == {"arg0": '<@mesh, [{"model"}]>'}


def test_one_of_several_meshes(module: pyshardy.Module) -> None:
    both = with_mesh(module, Mesh([("z", 8)]))
    assert list(module_meshes(both.root)) == ["mesh", "mesh_0"]
    assert with_mesh(both, Mesh([("z", 8)])) is both
    with pytest.raises(UsageError, match=r"got the meshes @mesh, @mesh_0, needed one mesh"):
        both.annotate({"x": P("data")})
    assert ins(both.annotate({"x": P("z")}, mesh={"z": 8})) == {"x": '<@mesh_0, [{"z"}, {}]>'}


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        (P("tensor"), r'(?s)annotating x: .*unknown axis name "tensor", .*at x, f32\[8, 16\]'),
        (P("data", None, "model"), "(?s)annotating x: sharding a tensor of 2 dimensions by .*got 3 entries"),
        (parse_sharding("<@mesh, [{}]>"), "got 1 dimensions, needed 2"),
        (parse_sharding("<@other, [{}, {}]>"), "got unknown mesh @other"),
        (P(reduced={"data"}), "reduced along data, needed one without reduced axes"),
        ("data,,", "reading a PartitionSpec"),
        (7, "reading a sharding: got an int, needed a PartitionSpec"),
    ],
)
def test_shardings_that_do_not_fit(module: pyshardy.Module, sharding, message: str) -> None:
    with pytest.raises((InvalidShardingError, UsageError, pyshardy.ShardyError), match=message):
        module.annotate({"x": sharding})


def test_specs_of_jax() -> None:
    spec = as_spec(P("x", P.UNCONSTRAINED, ("y", "z"), None, unreduced={"v", "u"}))
    assert spec is pyshardy.PartitionSpec("x", "?", ("y", "z"), None, unreduced=["u", "v"])
    assert as_spec(spec) is spec


def test_meshes() -> None:
    assert core_mesh(jax.make_mesh((4, 2), ("data", "model"))) is core_mesh(MESH) is core_mesh("data=4,model=2")
    with pytest.raises(UsageError, match="reading a mesh: got a list"):
        core_mesh([1, 2])


def test_explicit_axes_of_jax_are_warned_about() -> None:
    """JAX has decided what is inside, as it does by default for meshes that are made without saying otherwise."""
    import warnings

    jax = pytest.importorskip("jax")
    kinds = jax.sharding.AxisType
    x, given = jax.ShapeDtypeStruct((8, 8), "float32"), {"x": jax.sharding.PartitionSpec("data")}
    explicit, auto = (
        jax.sharding.AbstractMesh((4,), ("data",), axis_types=(kind,)) for kind in (kinds.Explicit, kinds.Auto)
    )
    module = pyshardy.load(lambda x: x + 1, x, mesh=explicit)
    with pytest.warns(UserWarning, match="along its explicit axes data") as caught:
        module.annotate(given)
        pyshardy.annotate(module, given)
    assert [warning.filename for warning in caught] == [__file__] * 2  # not a line of pyshardy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.annotate({"x": None})
        annotated = pyshardy.load(lambda x: x + 1, x, mesh=auto).annotate(given)
        pyshardy.load(lambda x: x + 1, x, mesh=explicit, in_shardings=given["x"])
    assert pyshardy.propagate(annotated).out_specs == jax.sharding.PartitionSpec("data", None)


def test_the_nearest_names_of_layers_are_one() -> None:
    names = [f"params['layers'][{layer}]['{name}']" for layer in range(24) for name in ("up", "down")]
    with pytest.raises(UsageError, match=r"needed one of params\['layers'\]\[0\.\.23\]\['up'\]"):
        matching_names("params['layers'][*]['upp']", names)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("params['layers'][0..2]['w']", [0, 1, 2]),
        ("params['layers'][1,3..9]['w']", [1, 3]),
        ("params['layers'][3..3]['w']", [3]),
        ("params['block_1..2']['w']", [4, 5]),
        ("params['block_*']['w']", [4, 5]),
        ("params['mlp_1..3/~/linear_0']['w']", [6]),
        ("params['a0..1b']", [7]),  # a key that is written so
    ],
)
def test_names_of_layers_as_tables_write_them(pattern: str, found: list[int]) -> None:
    names = [f"params['layers'][{layer}]['w']" for layer in range(4)]
    names += ["params['block_1']['w']", "params['block_2']['w']", "params['mlp_2/~/linear_0']['w']", "params['a0..1b']"]
    assert matching_names(pattern, names) == found
