"""Which other annotations mend a fault, and which are another design."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.checkup.kinds.batches import batch_cures
from pyshardy.checkup.kinds.ports import annotation_cure
from pyshardy.checkup.kinds.values import _partly_lost, _whole_rows
from pyshardy.checkup.program.families import frozen
from pyshardy.core.notation import parse_sharding
from pyshardy.frontend.interface import InterfaceTensor, input_tensors
from pyshardy.ir.shardings import module_meshes
from pyshardy.results.hints.edits import AnnotationEdit
from pyshardy.searching.autopartition.constraints import ConstrainableValue

WEIGHT, CACHE, ROWS = "tensor<64x64xf32>", "tensor<8x16x16x64xf32>", "tensor<8x64xf32>"


def served() -> pyshardy.Module:
    """A step that reads weights, and returns a cache anew."""
    arguments = [
        *((f"params['w{at}']", WEIGHT, '[{}, {"model"}]') for at in range(5)),
        ("cache", CACHE, '[{"data"}, {}, {}, {"model"}]'),
        *((f"batch['{name}']", ROWS, '[{"data"}, {}]') for name in "abcde"),
    ]
    given = ", ".join(
        f'%a{at}: {kind} {{sdy.sharding = #sdy.sharding<@mesh, {spec}>}} loc("{name}")'
        for at, (name, kind, spec) in enumerate(arguments)
    )
    result = f'({CACHE} {{jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}, {{}}, {{"model"}}]>}})'
    return pyshardy.load(
        f'sdy.mesh @mesh = <["data"=4, "model"=2]>\nfunc.func @main({given}) -> {result} {{\n'
        f"%0 = stablehlo.add %a5, %a5 : {CACHE}\nreturn %0 : {CACHE}\n}}"
    )


def named(module: pyshardy.Module, name: str) -> InterfaceTensor:
    return next(one for one in input_tensors(module.root) if one.name == name)


def test_a_tree_of_a_batch_is_no_tree_of_weights() -> None:
    names = {one.name for family in frozen(served(), {"data": 4, "model": 2}) for one in family.members}
    assert names == {f"params['w{at}']" for at in range(5)}


@pytest.mark.parametrize(
    ("name", "spec", "is_design"),
    [
        ("params['w0']", '[{"model"}, {}]', False),
        ("params['w0']", '[{"data"}, {"model"}]', True),  # "data" splits no weight
        ("cache", '[{"data"}, {}, {"model"}, {}]', False),
        ("cache", '[{"data", "model"}, {}, {}, {}]', True),  # the batch along one more axis
    ],
)
def test_what_is_another_design(name: str, spec: str, is_design: bool) -> None:
    module = served()
    one = named(module, name)
    edit = AnnotationEdit(True, (one.index,), parse_sharding(f"<@mesh, {spec}>"))
    assert annotation_cure(module, edit, input_tensors(module.root), "", None).is_design is is_design


def test_all_of_a_batch_gets_one_axis_more() -> None:
    module = served()
    mesh = next(one for one in module_meshes(module.root).values() if one.axes)
    texts = [cure.text for cure in batch_cures(module, "mesh", mesh)]
    assert any("batch['a']" in text and "2 more as P(('data', 'model'))" in text for text in texts)


def test_a_value_that_has_the_first_axis_of_the_batch_gets_the_others() -> None:
    site = ConstrainableValue(0, (64, 8, 32), "f32", 0.0, (("data",), (), ("model",)))
    rows, sizes = [("data", "model"), ("other", "model")], {"data": 4, "model": 2, "other": 2}
    (axes,) = _partly_lost(site, None, rows, sizes)
    dims, reason = _whole_rows(site.dims, axes)
    assert dims == (("data", "model"), (), ()) and reason.axis == '"model"' and "dimension 2 has it" in reason.text
    assert list(_partly_lost(site._replace(shape=(4, 8, 32)), None, rows, sizes)) == []  # two axes do not divide it
    assert list(_partly_lost(site._replace(dims=((), (), ("data",))), None, rows, sizes)) == []
