"""Ops that hand values on, and calls, are padded where the reference pads them; and where it refuses to, listed."""

from __future__ import annotations

from itertools import product

import pytest

from support.reference import jaxlib_version

from .partition_programs import PAD
from .partition_reasons import partition_reason
from .reference_process import ReferenceProcess
from .reshard_compare import Verdict, compare, ours

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older references have other versions of the pass")
TYPE = "tensor<12x1xf32>"
DIVISIBLE, UNEVEN = '<@m, [{"c"}, {}]>', '<@m, [{"c"}, {"b"}]>'


def attribute(sharding: str) -> str:
    """An attribute with the sharding of a result; nothing if there is none."""
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}" if sharding else ""


def typed(sharding: str) -> str:
    """The type of an argument or result of a function, with its sharding."""
    return f"{TYPE} {{sdy.sharding = #sdy.sharding{sharding}}}" if sharding else TYPE


CARRIERS = {
    "reshard": f"%0 = sdy.reshard %x {UNEVEN} : {TYPE}",
    "constraint": f"%0 = sdy.sharding_constraint %x {UNEVEN} : {TYPE}",
    "barrier": f"%0 = sdy.propagation_barrier %x allowed_direction=NONE {attribute(UNEVEN)} : {TYPE}",
    "chlo": f"%0 = chlo.erf %x {attribute(UNEVEN)} : {TYPE} -> {TYPE}",
    "named computation": f"""%0 = sdy.named_computation<"f">(%x) in_shardings=[{UNEVEN}] out_shardings=[{UNEVEN}] (%y: {TYPE}) {{
    sdy.return %y : {TYPE}
  }} : ({TYPE}) -> {TYPE}""",
    "manual computation": f"""%0 = sdy.manual_computation(%x) in_shardings=[{UNEVEN}] out_shardings=[{UNEVEN}] manual_axes={{"c"}} (%y: tensor<3x1xf32>) {{
    sdy.return %y : tensor<3x1xf32>
  }} : ({TYPE}) -> {TYPE}""",
}
"""Ops whose result is not divisible."""
USES = {
    "unused": "",
    "used": f"%1 = stablehlo.negate %0 {attribute(UNEVEN)} : {TYPE}",
    "used without a sharding": f"%1 = stablehlo.negate %0 : {TYPE}",
    "used whole": f"%1 = stablehlo.negate %0 {attribute(DIVISIBLE)} : {TYPE}",
    "handed on": f"%1 = sdy.reshard %0 {UNEVEN} : {TYPE}",
    "gathered": f'%1 = sdy.all_gather [{{}}, {{"b"}}] %0 out_sharding={DIVISIBLE} : {TYPE}',
}
RETURNS = {"returned": "", "returned whole": DIVISIBLE, "returned padded": UNEVEN}


def program(lines: str, arg: str, use: str, callee: str = "") -> str:
    """A private function that makes %0 of %x, and uses it."""
    head = f'sdy.mesh @m = <["a"=2, "b"=2, "c"=4]>\n{callee}'
    results, returned = (typed(RETURNS[use]), f"%0 : {TYPE}") if use in RETURNS else ("", "")
    return f"""{head}func.func private @main(%x: {typed(arg)}) -> ({results}) {{
  {lines}
  {USES.get(use, "")}
  return {returned}
}}
"""


@pytest.mark.parametrize("use", [*USES, *RETURNS])
@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_is_not_padded_stays_so(carrier: str, use: str, reference: ReferenceProcess) -> None:
    found = compare(program(CARRIERS[carrier], "", use), PAD, reference.run)
    assert found.verdict is Verdict.SAME, found.details


@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_is_padded_is_handed_on(carrier: str, reference: ReferenceProcess) -> None:
    text = program(CARRIERS[carrier], UNEVEN, "used")
    found = compare(text, PAD, reference.run)
    assert partition_reason(text, PAD, found) == "refused by the reference: padding that is left to a cast"
    assert "12x1x" not in ours(text, PAD)


@pytest.mark.parametrize("use", [*USES, *RETURNS])
def test_calls(use: str, reference: ReferenceProcess) -> None:
    verdicts = set()
    for arg, result, call in product(("", UNEVEN), ("", DIVISIBLE, UNEVEN), ("", DIVISIBLE, UNEVEN)):
        made = attribute(UNEVEN if result == UNEVEN else "")
        callee = f"""func.func private @f(%x: {typed(arg)}) -> ({typed(result)}) {{
  %0 = sdy.constant {made} dense<1.0> : {TYPE}
  return %0 : {TYPE}
}}
"""
        text = program(f"%0 = func.call @f(%x) {attribute(call)} : ({TYPE}) -> {TYPE}", arg, use, callee)
        found = compare(text, PAD, reference.run)
        reason = partition_reason(text, PAD, found)
        verdicts.add(reason or found.verdict.value)
        assert reason is not None or found.verdict is Verdict.SAME, (arg, result, call, found.details)
    assert "same" in verdicts
