"""Strings that are no UTF-8, which are legal in MLIR."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from jaxlib.mlir import ir

import pyshardy
from pyshardy.core.needs import Need
from pyshardy.errors import InvalidModuleError, ShardyError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.locations import argument_name, location_name, named_location, read_location, with_need
from pyshardy.ir.strings import (
    check_names,
    is_utf8,
    make_string,
    make_symbol,
    named_attributes,
    readable,
    string_value,
    symbol_name,
)

TEXTS = {"a": '"a"', "": '""', "é": r'"\C3\A9"', "\udcff": r'"\FF"', 'a"\udc80\\': r'"a\22\80\\"'}


@pytest.fixture(autouse=True)
def _context() -> Iterator[None]:
    with make_context(allow_unregistered_dialects=True):
        yield


@pytest.mark.parametrize(
    ("location", "index", "name"),
    [
        ('loc("x")', 0, "x"),
        ('loc("params[\'w\']"("f.py":3:4))', 1, "params['w']"),
        ("loc(unknown)", 1, "arg1"),
        ('loc("f.py":3:4)', 1, "arg1"),
        ('loc("Arg_1.47")', 1, "arg1"),
        ('loc("Arg_1")', 1, "arg1"),
        ('loc("Arg_1.47")', 2, "Arg_1.47"),
        ('loc("Arg_1.w")', 1, "Arg_1.w"),
    ],
)
def test_names_of_arguments(location: str, index: int, name: str) -> None:
    found = ir.Attribute.parse(location)
    assert argument_name(ir.Location.from_attr(found), index) == name


@pytest.mark.parametrize("text", TEXTS)
def test_strings_and_symbols_come_back(text: str) -> None:
    assert str(make_string(text)) == TEXTS[text]
    assert string_value(ir.Attribute.parse(TEXTS[text])) == string_value(make_string(text)) == text
    if text:
        assert symbol_name(ir.Attribute.parse("@" + TEXTS[text])) == symbol_name(make_symbol(text)) == text


@pytest.mark.parametrize("text", TEXTS)
def test_names_of_locations_come_back(text: str) -> None:
    inner = ir.Location.file("f.py", 3, 4)
    found = named_location(text, inner)
    assert location_name(found) == text
    assert str(found) == f'loc({TEXTS[text]}("f.py":3:4))'
    assert location_name(inner) is None


def test_causes_in_scopes_that_are_no_utf_8() -> None:
    need = Need("sum", "stablehlo.dot", None, is_result=True)
    found = read_location(with_need(named_location("jit(\udcff)", ir.Location.file("f.py", 3, 4)), need))
    assert (found.need, found.scope) == (need, r"jit(\FF)")


def test_what_is_shown() -> None:
    assert readable("é\udcff\udc80") == r"é\FF\80"
    assert (is_utf8("é"), is_utf8("a\udcff")) == (True, False)


def test_names_of_attributes_are_refused() -> None:
    message = "reading a module: got an attribute whose name is not UTF-8, needed names in UTF-8"
    for text in (r'{"\FF" = 1 : i32}', r'{a, b = {c = "\FF, "}, "\FF"}', r'{a = @"\FE", "b c" = ["\FF"], "\FF" = "x"}'):
        with pytest.raises(InvalidModuleError) as caught:
            check_names(ir.Attribute.parse(text))
        assert str(caught.value) == message
    check_names(
        ir.Attribute.parse(r'{a, b = {c = "\FF, "}, "c d" = 1.5 : f32, "\C3\A9" = #stablehlo.bounds<?>, f = "\FF = "}')
    )
    module = ir.Module.parse(r'module attributes {"t.\FF" = 1 : i32} {}')
    with pytest.raises(InvalidModuleError) as caught:
        named_attributes(module.operation.attributes)
    assert str(caught.value) == message
    plain = ir.Module.parse("module attributes {t.a = 1 : i32} {}").operation.attributes
    assert [name for name, _ in named_attributes(plain)] == ["t.a"]


ABS = '%0 = stablehlo.abs %a : tensor<8xf32> loc("\\FE")\nreturn %0 : tensor<8xf32>'
PROGRAMS = {
    "arguments": r'func.func @main(%a: tensor<8xf32> loc("\FF")) -> tensor<8xf32> { ' + ABS + " }",
    "results": r'func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32> {jax.result_info = "\FF"}) { ' + ABS + " }",
    "functions": r'func.func @"\FF"(%a: tensor<8xf32>) -> tensor<8xf32> { ' + ABS + " }",
    "calls": r"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = func.call @"\FF"(%a) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32> }
    func.func private @"\FF"(%a: tensor<8xf32>) -> tensor<8xf32> { """ + ABS + " }",
    "meshes": r"""sdy.mesh @"\FF" = <["\FE"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@"\FF", [{"\FE"}]>}) -> tensor<8xf32> { """
    + ABS + " }",
    "targets": r"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.custom_call @"\FF"(%a) {backend_config = "\FF"} : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32> }""",
    "named computations": r"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = sdy.named_computation<"\FF">(%a) (%b: tensor<8xf32>) { sdy.return %b : tensor<8xf32> }
        : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32> }""",
    "composites": r"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = stablehlo.composite "a.b" %a {composite_attributes = {x = "\FE"}, decomposition = @"\FF"}
        : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32> }
    func.func private @"\FF"(%a: tensor<8xf32>) -> tensor<8xf32> { """ + ABS + " }",
    "modules": r'module @"\FF" attributes {mhlo.a = "\FE"} { func.func @main(%a: tensor<8xf32> {jax.x = "\FF"}) '
    + "-> tensor<8xf32> { " + ABS + " } }",
}  # fmt: skip


@pytest.mark.parametrize("form", ["text", "bytecode"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_such_names(name: str, form: str) -> None:
    module = pyshardy.load(PROGRAMS[name])
    if form == "bytecode":
        module = pyshardy.load(module.bytecode())
    found = pyshardy.propagate(module, view="stablehlo")  # XLA's view has no calls
    str(found).encode()
    found.module.text().encode()
    pyshardy.load(found.module.bytecode())
    partition = pyshardy.partition(found)
    str(partition).encode()
    if name != "named computations":  # which becomes a call of a function with another name
        assert r"\FF" in found.module.text(debug_info=True)


def test_names_are_shown_as_mlir_writes_them() -> None:
    assert pyshardy.propagate(pyshardy.load(PROGRAMS["arguments"])).inputs[0].name == r"\FF"
    assert pyshardy.propagate(pyshardy.load(PROGRAMS["results"])).outputs[0].name == r"result\FF"
    assert r'@"\FF"' in str(pyshardy.propagate(pyshardy.load(PROGRAMS["functions"]))).splitlines()[0]
    assert r'on 2 devices: "\FE"=2' in str(pyshardy.propagate(pyshardy.load(PROGRAMS["meshes"])))


def test_ops_and_functions_of_such_names_are_refused_where_they_cannot_be() -> None:
    text = 'func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n%0 = "\\FF.x"(%a) : (tensor<8xf32>) -> tensor<8xf32>\nreturn %0 : tensor<8xf32> }'
    for program in (text, 'module { "\\FF.x"() : () -> () }'):
        with pytest.raises(InvalidModuleError) as caught:
            pyshardy.propagate(pyshardy.load(program, allow_unregistered_dialects=True))
        assert str(caught.value) == (
            r'reading a module: got an op with the name "\FF.x", needed names in UTF-8, without NUL'
        )
    with pytest.raises(ShardyError) as refused:
        pyshardy.run(pyshardy.partition(pyshardy.load(PROGRAMS["calls"]), view="stablehlo"), [0.0] * 8)
    assert str(refused.value) == (
        r'running a program: got the function @"\FF", needed names in UTF-8, the only ones that JAX supports'
    )


@pytest.mark.parametrize(("mesh", "axis"), [(r"m\FF", "x"), ("m", r"x\FF")])
def test_xla_alone_needs_names_of_meshes_and_axes_in_utf8(mesh: str, axis: str) -> None:
    """XLA's partitioner gets the meshes from JAX; the per-device program has none."""
    text = f"""sdy.mesh @"{mesh}" = <["{axis}"=2]>
    func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@"{mesh}", [{{"{axis}"}}]>}}) -> tensor<8xf32> {{
      %0 = stablehlo.negate %a : tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    partition, ones = pyshardy.partition(text), np.ones(8, np.float32)
    np.testing.assert_array_equal(partition.run_flat([ones])[0], -ones)
    with pytest.raises(ShardyError) as refused:
        partition.run_flat([ones], engine="xla")
    got = rf'the mesh @"{mesh}"' if axis == "x" else rf'the mesh axis "{axis}"'
    assert str(refused.value) == f"running a program: got {got}, needed names in UTF-8, the only ones that JAX supports"


@pytest.mark.parametrize("where", ["arguments", "functions", "ops"])
def test_names_of_attributes_are_refused_everywhere(where: str) -> None:
    odd = r'{"t.\FF" = 1 : i32}'
    marks = {place: odd if place == where else "" for place in ("arguments", "functions", "ops")}
    function = f"attributes {marks['functions']}" if marks["functions"] else ""
    text = f"""func.func @main(%a: tensor<8xf32> {marks["arguments"]}) -> tensor<8xf32> {function} {{
      %0 = stablehlo.abs %a {marks["ops"]} : tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    with pytest.raises(InvalidModuleError, match="got an attribute whose name is not UTF-8"):
        pyshardy.propagate(pyshardy.load(text))


@pytest.mark.parametrize(
    "attributes",
    [
        'xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22x\\22=2]>}", "\\FF" = "x"',
        'xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22x\\22=2]>, \\22\\5CFF\\22 = 1}"',
    ],
)
def test_frontend_attributes_of_such_names_are_refused(attributes: str) -> None:
    text = f"module attributes {{mhlo.frontend_attributes = {{{attributes}}}}} {{ func.func @main() {{ return }} }}"
    with pytest.raises(InvalidModuleError, match="got an attribute whose name is not UTF-8"):
        pyshardy.propagate(pyshardy.load(text))


def test_attributes_that_cannot_be_read_are_refused_whatever_names_are_in_them() -> None:
    """MLIR's exceptions end the process over such a message."""
    meshes = 'xla.sdy.meshes = "{m = #sdy.mesh<[\\22\\5CFF\\22=2, \\22\\5CFF\\22=2]>}"'
    text = f"module attributes {{mhlo.frontend_attributes = {{{meshes}}}}} {{ func.func @main() {{ return }} }}"
    with pytest.raises(PassError, match="cannot be read: something with a name that is not UTF-8"):
        pyshardy.propagate(pyshardy.load(text))


def test_texts_of_attributes_that_are_not_utf8_are_refused() -> None:
    meshes = 'xla.sdy.meshes = "{m = #sdy.mesh<[\\22\\FF\\22=2]>}"'
    text = f"module attributes {{mhlo.frontend_attributes = {{{meshes}}}}} {{ func.func @main() {{ return }} }}"
    with pytest.raises(PassError, match=r'has xla.sdy.meshes = {m = #sdy.mesh<\["\\FF"=2\]>}, which is not UTF-8'):
        pyshardy.propagate(pyshardy.load(text))
