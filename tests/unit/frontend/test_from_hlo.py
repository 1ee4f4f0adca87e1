from __future__ import annotations

import pytest
from jaxlib import _hlo

import pyshardy
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.from_hlo import is_hlo_text
from pyshardy.frontend.from_text import load_bytes
from pyshardy.ir.hlo_proto import hlo_module_proto

from .hlo_texts import FRONTEND, GSPMD, HEAD, NAMED, PLAIN


def proto(text: str) -> bytes:
    return bytes(_hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto())


def inside_hlo_proto(module: bytes) -> bytes:
    """An `HloProto` around a module: field 1 of it, with the length in front."""
    size, length = len(module), bytearray()
    while size > 127:
        length.append(size & 127 | 128)
        size >>= 7
    return b"\x0a" + bytes([*length, size]) + module


@pytest.mark.parametrize("text", [PLAIN, GSPMD, FRONTEND], ids=["plain", "GSPMD", "frontend attributes"])
def test_text_and_both_protos_are_one_module(text: str) -> None:
    as_text = pyshardy.load(text)
    assert as_text.text() == pyshardy.load(proto(text)).text() == pyshardy.load(inside_hlo_proto(proto(text))).text()


@pytest.mark.parametrize(
    ("text", "axis"), [(GSPMD, "axis_0"), (FRONTEND, "data")], ids=["GSPMD", "frontend attributes"]
)
def test_the_program_is_propagated_under_its_names(text: str, axis: str) -> None:
    result = pyshardy.propagate(pyshardy.load(text))
    assert [tensor.name for tensor in result.inputs] == ["x", "params['w']"]
    assert [str(tensor.sharding) for tensor in result.outputs] == [f'<@mesh, [{{"{axis}"}}, {{}}]>']


def test_source_lines_stay() -> None:
    assert '"f.py":7' in pyshardy.load(GSPMD).text(debug_info=True)


@pytest.mark.parametrize("flag", ["true", "false", "true,false"])
def test_results_that_may_be_changed_are_open(flag: str) -> None:
    text = f"""HloModule f, entry_computation_layout={{(f32[8]{{0}})->(f32[8]{{0}}, f32[8]{{0}})}}, allow_spmd_sharding_propagation_to_output={{{flag}}}

ENTRY %main (x: f32[8]) -> (f32[8], f32[8]) {{
  %x = f32[8]{{0}} parameter(0), sharding={{devices=[2]<=[2]}}
  %t = f32[8]{{0}} tanh(%x)
  ROOT %r = (f32[8]{{0}}, f32[8]{{0}}) tuple(%t, %x), sharding={{{{replicated}}, {{devices=[2]<=[2]}}}}
}}"""  # noqa: E501
    result = pyshardy.propagate(pyshardy.load(text))
    is_open = flag != "false"
    assert str(result.outputs[0].sharding) == ('<@mesh, [{"axis_0"}]>' if is_open else "<@mesh, [{}]>")
    assert str(result.outputs[1].sharding) == '<@mesh, [{"axis_0"}]>'


def test_named_axes() -> None:
    try:
        found = pyshardy.load(NAMED)
    except InvalidModuleError as error:
        assert "jaxlib" not in str(error)
        pytest.skip("this jaxlib's HLO has no named axes")
    assert str(pyshardy.propagate(found).outputs[0].sharding) == '<@mesh, [{"data"}, {}]>'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            PLAIN.replace("jit_f,", "jit_f, is_scheduled=true,").encode(),
            "got HLO that XLA has partitioned and scheduled",
        ),
        (HEAD.encode(), "Syntax error when trying to parse the text as a HloModule"),
        (proto(PLAIN)[:-40] + b"\xff" * 40, "bytes that are neither UTF-8"),
    ],
)
def test_what_is_no_hlo(content: bytes, message: str) -> None:
    with pytest.raises(InvalidModuleError) as caught:
        load_bytes(content, "f.pb")
    assert str(caught.value).startswith("reading a module: got ")
    assert message in str(caught.value)
    assert (caught.value.where or "").startswith("f.pb")


def test_a_proto_that_is_no_module_of_hlo() -> None:
    broken = b"\x0a\x05jit_f\x1a\x00"  # a name, and one computation that is empty
    assert hlo_module_proto(broken) == broken
    with pytest.raises(InvalidModuleError, match="needed an HloModuleProto or HloProto"):
        load_bytes(broken)


def test_telling_forms_apart() -> None:
    assert is_hlo_text("  // a comment\nHloModule f\n")
    assert not is_hlo_text("HloModules")
    assert hlo_module_proto(b"") is None
    assert hlo_module_proto(b"func.func @main() { return }") is None
    assert hlo_module_proto(b"\x0a\x7f") is None
