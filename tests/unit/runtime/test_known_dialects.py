"""Programs of dialects that no engine knows."""

from __future__ import annotations

import numpy as np
import pytest

import pyshardy
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.runtime.known_dialects import check_known

NEEDED = "needed dialects that XLA knows, such as StableHLO"
UNKNOWN = {
    '%0 = "toy.f"(%a) : (tensor<8xf32>) -> tensor<8xf32>': f"got dialect 'toy' is unknown, {NEEDED}",
    '%0 = "y"(%a) : (tensor<8xf32>) -> tensor<8xf32>': f"got 'y' op created with unregistered dialect, {NEEDED}\n  at -:3:11",
}


def program(line: str) -> Module:
    text = f"""sdy.mesh @m = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@m, [{{"x"}}]>}}) -> tensor<8xf32> {{
     {line}
      return %0 : tensor<8xf32>
    }}"""
    return pyshardy.load(text, allow_unregistered_dialects=True)


@pytest.mark.parametrize("line", UNKNOWN)
@pytest.mark.parametrize("engine", ["local", "xla"])
def test_they_are_refused_before_xla_prints_why(line: str, engine: str, capfd: pytest.CaptureFixture[str]) -> None:
    partition = pyshardy.partition(program(line), view="stablehlo")
    with pytest.raises(ShardyError) as refused:
        partition.run_flat([np.ones(8, np.float32)], engine=engine)
    assert str(refused.value) == f"running a module: {UNKNOWN[line]}"
    assert "error:" not in capfd.readouterr().err


@pytest.mark.parametrize("line", ["%0 = stablehlo.abs %a : tensor<8xf32>", "%0 = math.absf %a : tensor<8xf32>"])
def test_known_ones_pass(line: str) -> None:
    check_known(program(line), "running")


def test_an_op_that_xla_does_not_know_is_named() -> None:
    program = pyshardy.load("""
    func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
      %f = constant @g : () -> ()
      call_indirect %f() : () -> ()
      return %a : tensor<8xf32>
    }
    func.func private @g() { return }""")
    with pytest.raises(ShardyError, match="got failed to legalize operation 'func.constant'") as refused:
        pyshardy.run(pyshardy.partition(program), np.ones(8, np.float32))
    assert str(refused.value).endswith("needed a program that StableHLO can serialize")
