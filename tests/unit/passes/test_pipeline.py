from __future__ import annotations

import gc

import pytest

from pyshardy.errors import NotationError, UsageError
from pyshardy.ir.diagnostics import Diagnostics, PassError
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.common.symbol_dce import SymbolDce
from pyshardy.passes.pipeline import run_on_root, run_passes, run_pipeline
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.transforms.context import PassContext

TEXT = """sdy.mesh @m = <["a"=2]>
func.func @first(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @second() {
  return
}
"""


class Rename(Pass):
    """Append a letter to the names of functions, one by one."""

    letter: str

    name = "rename"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:
        op.set_attr("sym_name", op.attrs["sym_name"] + self.letter)
        context.diagnostics.warn(op, f"appended {self.letter}")


class Fail(Pass):
    """Refuse every module, with a note at every function."""

    name = "fail"

    def run(self, op: Op, context: PassContext) -> None:
        raise PassError(op, "is not wanted", [(function, "it has this") for function in functions(op)])


class FailOnFunctions(Pass):
    """Refuse every function."""

    name = "fail-on-functions"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:
        raise PassError(op, f"is called {op.attrs['sym_name']}")


class AddFunction(Pass):
    """Put a copy of every function behind it."""

    name = "add-function"
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:
        copy = op.clone()
        copy.set_attr("sym_name", copy.attrs["sym_name"] + "_copy")
        copy.insert_after(op)


def names(module: Module) -> list[str]:
    return [function.attrs["sym_name"] for function in functions(module.root)]


def test_passes_run_in_order_on_every_function() -> None:
    assert names(run_passes(Module.parse(TEXT), [Rename("a"), Rename("b")])) == ["firstab", "secondab"]


def test_the_module_given_is_not_changed() -> None:
    module = Module.parse(TEXT)
    before = module.text(debug_info=True)
    module.root  # noqa: B018 (nodes that exist already are not worked on either)
    result = run_passes(module, [Rename("a")])
    assert module.text(debug_info=True) == before
    assert names(module) == ["first", "second"]
    assert result.text() != before


def test_no_passes_give_an_equal_module() -> None:
    module = Module.parse(TEXT)
    assert run_passes(module, []).text(debug_info=True) == module.text(debug_info=True)


def test_the_origin_of_the_module_is_kept() -> None:
    module = Module.parse(TEXT)
    module.origin = object()
    assert run_passes(module, [Rename("a")]).origin is module.origin


def test_functions_that_a_pass_adds_wait_for_the_passes_behind_those_on_functions() -> None:
    result = run_passes(Module.parse(TEXT), [AddFunction(), SymbolDce(), Rename("a")])
    assert names(result) == ["firsta", "first_copya", "seconda", "second_copya"]


def test_warnings_are_collected_in_order() -> None:
    diagnostics = Diagnostics()
    run_passes(Module.parse(TEXT), [Rename("a"), Rename("b")], diagnostics)
    assert [str(message) for message in diagnostics.messages] == [
        "-:2:1: warning: appended a",
        "-:2:1: warning: appended b",
        "-:6:1: warning: appended a",
        "-:6:1: warning: appended b",
    ]


def test_a_pass_that_fails_stops_the_pipeline_and_leaves_the_module_as_it_was() -> None:
    module = Module.parse(TEXT)
    before = module.text(debug_info=True)
    diagnostics = Diagnostics()
    ran: list[str] = []
    with pytest.raises(PassError) as caught:
        run_passes(
            module,
            [Rename("a"), Fail(), Rename("b")],
            diagnostics,
            lambda pass_, op, seconds: ran.append(pass_.name),
        )
    assert ran == ["rename"] * 2
    assert module.text(debug_info=True) == before
    assert str(caught.value) == "'builtin.module' op is not wanted\n  at -:0:0"
    assert [str(note) for note in caught.value.diagnostic.notes] == [
        "-:2:1: note: it has this",
        "-:6:1: note: it has this",
    ]
    assert [message.message for message in diagnostics.messages] == ["appended a"] * 2


def test_the_collector_runs_again_after_a_failure() -> None:
    assert gc.isenabled()
    with pytest.raises(PassError):
        run_passes(Module.parse(TEXT), [Fail()])
    assert gc.isenabled()


def test_a_function_that_fails_does_not_keep_the_others_from_their_turn() -> None:
    ran: list[str] = []
    with pytest.raises(PassError, match="is called firsta") as caught:
        run_passes(
            Module.parse(TEXT),
            [Rename("a"), FailOnFunctions(), Rename("b"), SymbolDce()],
            after_pass=lambda pass_, op, seconds: ran.append(op.attrs["sym_name"]),
        )
    assert ran == ["firsta", "seconda"]
    assert [message.message for message in caught.value.diagnostics] == [
        "'func.func' op is called firsta",
        "'func.func' op is called seconda",
    ]


def test_hooks_see_every_run_of_a_pass_and_the_time_it_took() -> None:
    seen: list[tuple[str, Pass, str]] = []

    def after(pass_: Pass, op: Op, seconds: float) -> None:
        assert seconds >= 0
        seen.append(("after", pass_, op.attrs.get("sym_name", op.name)))

    def before(pass_: Pass, op: Op) -> None:
        seen.append(("before", pass_, op.attrs.get("sym_name", op.name)))

    def failed(pass_: Pass, op: Op) -> None:
        seen.append(("failed", pass_, op.attrs.get("sym_name", op.name)))

    module = Module.parse(TEXT)
    passes = [Rename("a"), SymbolDce(), Fail()]
    with pytest.raises(PassError):
        run_on_root(module, module.copy_root(), passes, None, after, before_pass=before, on_failure=failed)
    assert seen == [
        ("before", Rename("a"), "first"),
        ("after", Rename("a"), "firsta"),
        ("before", Rename("a"), "second"),
        ("after", Rename("a"), "seconda"),
        ("before", SymbolDce(), "builtin.module"),
        ("after", SymbolDce(), "builtin.module"),
        ("before", Fail(), "builtin.module"),
        ("failed", Fail(), "builtin.module"),
    ]


def test_what_the_passes_shared_comes_back() -> None:
    module = Module.parse(TEXT)
    root = module.copy_root()
    context = run_on_root(module, root, [Rename("a")])
    assert context.root is root
    assert context.attrs is module.attrs
    assert list(context.meshes) == ["m"]
    assert len(context.diagnostics.messages) == 2
    assert context.propagated == []
    assert [function.attrs["sym_name"] for function in functions(root)] == ["firsta", "seconda"]


def test_propagation_records_its_result() -> None:
    module = Module.parse(TEXT.replace("@first", "@main"))
    passes = parse_pipeline("sdy-basic-propagate,sdy-aggressive-propagate")
    context = run_on_root(module, module.copy_root(), passes)
    assert len(context.propagated) == 2


def test_a_textual_pipeline() -> None:
    text = TEXT.replace("func @second", "func private @second")
    diagnostics = Diagnostics()
    result = run_pipeline(Module.parse(text), "builtin.module(symbol-dce)", diagnostics)
    assert names(result) == ["first"]
    assert diagnostics.messages == []


def test_an_empty_pipeline_changes_nothing() -> None:
    module = Module.parse(TEXT)
    assert run_pipeline(module, "").text() == module.text()


@pytest.mark.parametrize(("text", "error"), [("nothing", UsageError), ("symbol-dce,", NotationError)])
def test_a_wrong_pipeline_is_refused_before_anything_runs(text: str, error: type[Exception]) -> None:
    module = Module.parse(TEXT)
    with pytest.raises(error):
        run_pipeline(module, text)
    assert names(module) == ["first", "second"]
