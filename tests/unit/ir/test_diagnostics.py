from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import (
    Diagnostic,
    Diagnostics,
    PassError,
    Severity,
    errors_of,
)
from pyshardy.ir.locations import format_location, source_position
from pyshardy.ir.nodes import Op

from .reading import find, read

LOCATIONS = [
    ('loc("a.py":3:8)', ("a.py", 3, 8), "a.py:3:8"),
    ('loc("a b/c.py":3:8)', ("a b/c.py", 3, 8), "a b/c.py:3:8"),
    ('loc("-":1:1)', ("-", 1, 1), "-:1:1"),
    ("loc(unknown)", None, "unknown"),
    ('loc("name")', None, "name"),
    ('loc("name"("a.py":3:8))', ("a.py", 3, 8), '"name"("a.py":3:8)'),
    ('loc(fused["a.py":1:2, "b.py":3:4])', ("a.py", 1, 2), 'fused["a.py":1:2, "b.py":3:4]'),
    ('loc(callsite("f"("a.py":1:2) at "b.py":3:4))', ("a.py", 1, 2), 'callsite("f"("a.py":1:2) at "b.py":3:4)'),
]


@pytest.mark.parametrize(("text", "position", "shown"), LOCATIONS)
def test_places_of_locations(text: str, position: tuple[str, int, int] | None, shown: str) -> None:
    location = find(read(f"func.func private @f() {text}"), "func.func").location
    assert isinstance(location, ir.Location)
    for given in (location, text):
        assert source_position(given) == position
        assert format_location(given) == shown


def test_no_location() -> None:
    assert source_position(None) is None
    assert format_location(None) == "unknown"


def test_a_name_that_looks_like_a_place_is_taken_for_none() -> None:
    assert source_position('loc("a:1:2")') is None


def sine() -> Op:
    return find(
        read("func.func @f(%a: tensor<8xf32>) {\n  %0 = stablehlo.sine %a : tensor<8xf32>\n  return\n}"),
        "stablehlo.sine",
    )


@pytest.mark.parametrize("severity", Severity)
def test_diagnostics_as_text(severity: Severity) -> None:
    assert str(Diagnostic(severity, "is odd", sine().location)) == f"-:2:8: {severity.value}: is odd"
    assert str(Diagnostic(severity, "is odd")) == f"unknown: {severity.value}: is odd"


def test_warnings_are_collected() -> None:
    diagnostics = Diagnostics()
    op = sine()
    diagnostics.warn(op, "first")
    diagnostics.warn(op, "second")
    assert diagnostics.messages == [
        Diagnostic(Severity.WARNING, "first", op.location),
        Diagnostic(Severity.WARNING, "second", op.location),
    ]
    assert Diagnostics().messages == []


def test_the_error_of_a_pass_names_the_op_and_its_place() -> None:
    op = sine()
    around = op.parent_op
    assert around is not None
    error = PassError(op, "is not wanted", [(around, "inside this"), (op, "and here")])
    assert isinstance(error, InvalidModuleError)
    assert str(error) == "'stablehlo.sine' op is not wanted\n  at -:2:8"
    assert error.where == "-:2:8"
    assert error.diagnostics == (error.diagnostic,)
    assert error.diagnostic == Diagnostic(
        Severity.ERROR,
        "'stablehlo.sine' op is not wanted",
        op.location,
        (
            Diagnostic(Severity.NOTE, "inside this", around.location),
            Diagnostic(Severity.NOTE, "and here", op.location),
        ),
    )


def test_the_error_at_an_op_without_a_place() -> None:
    assert str(PassError(Op("t.op"), "is not wanted")) == "'t.op' op is not wanted\n  at unknown"


def errors_in(text: str) -> list[Diagnostic]:
    with make_context() as context, errors_of(context) as found, pytest.raises(ir.MLIRError):
        ir.Module.parse(text)
    return found


def test_diagnostics_of_mlir_with_their_notes() -> None:
    (found,) = errors_in("func.func @f() { return }\nfunc.func @f() { return }")
    assert str(found) == "-:2:1: error: redefinition of symbol named 'f'"
    assert [str(note) for note in found.notes] == ["-:1:1: note: see existing symbol definition here"]
    assert found.notes[0].severity is Severity.NOTE


def test_notes_that_print_the_op_again_are_left_out() -> None:
    with make_context() as context:
        module = ir.Module.parse("func.func @f(%a: tensor<8xf32>) { return }", None)
        entry = module.body.operations[0].regions[0].blocks[0]
        type = ir.Type.parse("tensor<4xf32>")
        before = ir.InsertionPoint.at_block_begin(entry)
        ir.Operation.create("stablehlo.sine", [type], [entry.arguments[0]], loc=ir.Location.unknown(), ip=before)
        with pytest.raises(ir.MLIRError) as caught:
            module.operation.verify()
        assert any("see current operation" in note.message for note in caught.value.error_diagnostics[0].notes)
        with errors_of(context) as errors, pytest.raises(ir.MLIRError):
            module.operation.verify()
        (found,) = errors
        assert found.notes == ()
        assert found.message == "'stablehlo.sine' op requires compatible types for all operands and results"


def test_a_message_that_is_no_utf_8_does_not_end_the_process() -> None:
    (found,) = errors_in('func.func @f() { func.call @"\\FF"() : () -> ()\nreturn }')
    assert str(found) == "-:1:18: error: something with a name that is not UTF-8"


def test_listening_ends_with_the_block(capfd: pytest.CaptureFixture[str]) -> None:
    with make_context() as context:
        with errors_of(context) as found:
            pass
        with pytest.raises(ir.MLIRError) as caught:
            ir.Module.parse("nonsense")
        assert len(caught.value.error_diagnostics) == 1
    assert (found, capfd.readouterr().err) == ([], "")
