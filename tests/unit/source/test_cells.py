"""Lines in cells of a notebook."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import pyshardy
from pyshardy.source.cells import cell_name, file_name
from pyshardy.source.places import format_place

CELL = "/tmp/ipykernel_7/3141592653.py"
PROGRAM = f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> tensor<8xf32> {{
  %0 = stablehlo.tanh %a : tensor<8xf32> loc("jit(f)/tanh"("{CELL}":14:2))
  return %0 : tensor<8xf32>
}}"""


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this ran in the third cell of a notebook."""
    compiler = SimpleNamespace(format_code_name=lambda name: ("Cell", "In[3]") if name == CELL else None)
    shell = SimpleNamespace(compile=compiler)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))


def test_outside_of_a_notebook_a_file_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert cell_name(CELL) is None
    assert file_name(CELL) == "3141592653.py"
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert cell_name(CELL) is None


def test_a_cell_has_the_name_that_the_notebook_shows(notebook: None) -> None:
    assert format_place((CELL, 14, 2)) == "In[3]:14"
    assert format_place((CELL, 14, 2), only_name=True) == "In[3]:14"
    assert format_place(("net.py", 14, 2)) == "net.py:14"


def test_explanations_name_cells_and_find_them(notebook: None) -> None:
    result = pyshardy.propagate(pyshardy.load(PROGRAM), view="stablehlo")
    assert "through `tanh` at In[3]:14" in str(result.explain("result"))
    assert str(result.explain("In[3]:14")).startswith("the result of `tanh` at In[3]:14")
    with pytest.raises(pyshardy.UsageError, match=r"In\[3\]:14"):
        result.explain("In[3]:15")
