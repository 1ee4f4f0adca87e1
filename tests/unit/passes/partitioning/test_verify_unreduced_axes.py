from __future__ import annotations

import pytest

from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.after_pass import ABC, on, refusal, whole
from support.reference import jaxlib_version

VERIFY = "sdy-verify-unreduced-axes"
T = "tensor<8x8xf32>"
MESHES = ABC + 'sdy.mesh @n = <["a"=2, "b"=2, "c"=2], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>\n'
PLAIN, ON_B, ON_C = '[{"a"}, {}]', '[{"a"}, {}], unreduced={"b"}', '[{"a"}, {}], unreduced={"c"}'
needs_kinds = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="partial values of older dialects are always summed"
)


def main(given: str | None, *body: str, returned: str = "%0", result: str | None = None, more: str = "") -> str:
    """A function of one 8x8 tensor."""
    arg, out = ("" if text is None else f" {{sdy.sharding = #sdy.sharding{whole(text)}}}" for text in (given, result))
    lines = "\n  ".join((*body, f"return {returned} : {T}"))
    return f"{MESHES}func.func @main(%x: {T}{arg}) -> ({T}{out}) {{\n  {lines}\n}}\n{more}"


def unary(given: str | None, made: str | None, name: str = "abs") -> str:
    attrs = "" if made is None else " " + on(made)
    return main(given, f"%0 = stablehlo.{name} %x{attrs} : {T}", result=made)


def reduction(combiner: str, given: str, made: str) -> str:
    reduce = f"%0 = stablehlo.reduce(%x init: %c) applies stablehlo.{combiner} across dimensions = [1] {on(made)}"
    return (
        f"{MESHES}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding{whole(given)}}}, %c: tensor<f32>) -> "
        f"(tensor<8xf32> {{sdy.sharding = #sdy.sharding{whole(made)}}}) {{\n  {reduce} : ({T}, tensor<f32>) -> "
        "tensor<8xf32>\n  return %0 : tensor<8xf32>\n}"
    )


def call(given: str | None, arg: str | None, inner: str | None = None, outer: str | None = None) -> str:
    """A call; the shardings of the operand, the argument, the result of the callee, the result of the call."""
    texts = ["" if text is None else f" {{sdy.sharding = #sdy.sharding{whole(text)}}}" for text in (arg, inner)]
    body = f"%1 = sdy.reshard %p {whole(inner or PLAIN)} : {T}\n  return %1 : {T}"
    callee = f"func.func private @f(%p: {T}{texts[0]}) -> ({T}{texts[1]}) {{\n  {body}\n}}"
    attrs = "" if outer is None else " " + on(outer)
    return main(given, f"%0 = func.call @f(%x){attrs} : ({T}) -> {T}", more=callee)


def all_reduce(combiner: str, given: str, made: str | None = None) -> str:
    """StableHLO's own all-reduce."""
    attrs = "" if made is None else f", {on(made)[1:-1]}"
    region = (
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        f"  %s = stablehlo.{combiner} %a, %b : tensor<f32>\n  stablehlo.return %s : tensor<f32>"
    )
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    body = f'%0 = "stablehlo.all_reduce"(%x) ({{ {region} }}) {{{groups}{attrs}}} : ({T}) -> {T}'
    return main(given, body, result=made)


def manual(out: str) -> str:
    """A manual computation that returns a value that is unreduced along the manual axis and `b`."""
    inner = f"sdy.return %p : {T}"
    shardings = f'in_shardings=[<@m, [{{}}, {{}}], unreduced={{"a", "b"}}>] out_shardings=[{whole(out)}]'
    return main(
        '[{}, {}], unreduced={"a", "b"}',
        f'%0 = sdy.manual_computation(%x) {shardings} manual_axes={{"a"}} (%p: {T}) {{\n  {inner}\n}} : ({T}) -> {T}',
        result=out,
    )


RESHARD = f"%1 = sdy.reshard %x {whole(ON_B)} : {T}"
BARRIER = f"%1 = sdy.propagation_barrier %x allowed_direction=NONE {on(PLAIN)} : {T}"
ACCEPTED = {
    "kept": unary(ON_B, ON_B),
    "added by an ordinary op": unary(PLAIN, ON_B),
    "on another mesh": unary(ON_B, '<@n, [{"a"}, {}]>'),
    "dropped by a reshard": main(ON_B, f"%0 = sdy.reshard %x {whole(PLAIN)} : {T}"),
    "dropped behind a reshard": main(PLAIN, RESHARD, f"%0 = stablehlo.abs %1 {on(PLAIN)} : {T}"),
    "dropped by a barrier": main(ON_B, BARRIER, returned="%1", result=ON_B),
    "all-reduced": main(ON_B, f'%0 = sdy.all_reduce {{"b"}} %x out_sharding={whole(PLAIN)} : {T}', result=PLAIN),
    "all-reduced by StableHLO": all_reduce("add", ON_B, PLAIN),
    "summed": reduction("add", PLAIN, '[{"a"}], unreduced={"b"}'),
    "product": main(PLAIN, f"%0 = stablehlo.dot %x, %x {on(ON_B)} : ({T}, {T}) -> {T}", result=ON_B),
    "returned without a sharding": main(ON_B, returned="%x"),
    "call": call(ON_B, ON_B, ON_C, ON_C),
    "manual axes do not count inside": manual('[{}, {}], unreduced={"a", "b"}'),
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted_and_unchanged(text: str) -> None:
    module = Module.parse(text)
    assert run_pipeline(module, VERIFY).text() == module.text()


CANNOT_DROP = (
    'drops the unreduced axes of its operands along "b", which this op cannot; '
    "only a reshard, an all-reduce or a reduce-scatter may"
)
COUNTERPART = "has other unreduced axes than its counterpart for"
REFUSED = {
    "dropped": (unary(ON_B, PLAIN), f"'stablehlo.abs' op {CANNOT_DROP}"),
    "changed": (unary(ON_B, ON_C), f"'stablehlo.abs' op {CANNOT_DROP}"),
    "added by a product reduction": (
        reduction("multiply", PLAIN, '[{"a"}], unreduced={"b"}'),
        "'stablehlo.reduce' op gives partial results along \"b\", which this op cannot",
    ),
    "added by an all-reduce": (
        all_reduce("add", PLAIN, ON_B),
        "'stablehlo.all_reduce' op gives partial results along \"b\", which this op cannot",
    ),
    "dropped by an all-reduce of products": (
        all_reduce("multiply", ON_B, PLAIN),
        f"'stablehlo.all_reduce' op {CANNOT_DROP}",
    ),
    "summed by a maximum": (
        reduction("maximum", PLAIN, '[{"a"}], unreduced={"b"}'),
        "'stablehlo.reduce' op gives partial results along \"b\" combined by sum, needed max",
    ),
    "all-reduced by a maximum": (
        all_reduce("maximum", ON_B, PLAIN),
        "'stablehlo.all_reduce' op drops the unreduced axes of its operands along \"b\" combined by sum, needed max",
    ),
    "all-reduce of a value without a sharding": (
        main(None, f'%0 = sdy.all_reduce {{"b"}} %x out_sharding={whole("[{}, {}]")} : {T}'),
        "'sdy.all_reduce' op has an operand without a sharding",
    ),
    "returned": (
        main(ON_B, returned="%x", result=PLAIN),
        f"'func.return' op {COUNTERPART} returned value 0: b; reshard in between",
    ),
    "returned others": (
        main(ON_B, returned="%x", result=ON_C),
        f"'func.return' op {COUNTERPART} returned value 0: b, c; reshard in between",
    ),
    "returned from a manual computation": (
        manual('[{}, {}], unreduced={"a"}'),
        f"'sdy.return' op {COUNTERPART} returned value 0: b; reshard in between",
    ),
    "call argument": (
        call(ON_B, PLAIN),
        f"'func.call' op {COUNTERPART} argument 0 of the call: b; reshard in between",
    ),
    "call argument where only the callee is unreduced": (
        call(PLAIN, ON_B),
        f"'func.call' op {COUNTERPART} argument 0 of the call: b; reshard in between",
    ),
    "call result": (
        call(PLAIN, PLAIN, ON_B, PLAIN),
        f"'func.call' op {COUNTERPART} result 0 of the call: b; reshard in between",
    ),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(text: str, message: str) -> None:
    assert refusal(text, VERIFY) == message


@needs_kinds
def test_refuses_another_way_to_combine() -> None:
    text = unary(ON_B, '[{"a"}, {}], unreduced=max{"b"}')
    assert refusal(text, VERIFY) == (
        "'stablehlo.abs' op keeps unreduced axes but changes how they combine, from sum to max"
    )
