"""The helper that verifies what is written notices what is written op by op without a reason."""

from __future__ import annotations

import warnings

import pytest

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.module import Module
from pyshardy.ir.write import OpByOpWarning
from support.writing import verify_written

TEXT = 'sdy.mesh @m = <["x"=2]> func.func @main(%a: i32 {sdy.sharding = #sdy.sharding<@m, []>}) { return }'


def test_a_valid_module_is_verified() -> None:
    module = Module.parse(TEXT)
    verify_written(module.with_root(module.copy_root()))


def test_an_invalid_module_is_refused() -> None:
    module = Module.parse(TEXT)
    root = module.copy_root()
    next(iter(root.region.block)).erase()
    with pytest.raises(InvalidModuleError):
        verify_written(module.with_root(root))


def test_another_reason_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = Module.parse(TEXT)
    monkeypatch.setattr(Module, "mlir", property(lambda _: warnings.warn("slow", OpByOpWarning, stacklevel=1) or 1))
    monkeypatch.setattr(Module, "verify", lambda _: None)
    with pytest.raises(AssertionError, match="slow"):
        verify_written(module)
