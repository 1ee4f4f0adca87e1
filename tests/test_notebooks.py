"""The notebooks of `examples/` run from beginning to end and show what they are committed with; the site has them."""

from __future__ import annotations

import json
import re
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import notebooks
import pytest

ROOT = Path(__file__).parent.parent
NAMES = [path.stem for path in notebooks.NOTEBOOKS]
MISSING = [name for name in ("nbclient", "ipykernel", "matplotlib") if find_spec(name) is None]


def committed(name: str) -> Any:
    return json.loads((ROOT / f"examples/{name}.ipynb").read_text())


def executed(name: str) -> Any:
    """A notebook as it runs now; what Jupyter itself warns of is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return notebooks.execute(ROOT / f"examples/{name}.ipynb")


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.skipif(bool(MISSING), reason="needs nbclient, ipykernel and matplotlib, which `make test` installs")
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_it_is_committed_with(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("XLA_FLAGS")  # the notebook asks for its devices itself
    found = notebooks.shown(executed(name))
    assert found == notebooks.shown(committed(name)), "run `make notebooks`"


def test_there_are_notebooks_with_pictures() -> None:
    assert {"training", "decoding", "diffusion"} <= set(NAMES)
    for name in NAMES:
        assert "image/png" in notebooks.shown(committed(name)), name


def test_notebooks_hold_no_times_of_day_and_no_errors() -> None:
    for name in NAMES:
        for cell in committed(name)["cells"]:
            assert "execution" not in cell["metadata"]
            assert {output["output_type"] for output in cell.get("outputs", [])} <= {
                "stream",
                "display_data",
                "execute_result",
            }


def test_a_table_or_picture_is_shown_once() -> None:
    for name in NAMES:
        found = [said for said in notebooks.shown(committed(name)) if len(said) > 1000]
        assert len(found) == len(set(found)), name


def test_every_notebook_has_a_page_with_its_title() -> None:
    for name in NAMES:
        page = (ROOT / f"docs/notebooks/{name}.md").read_text()
        first = notebooks.joined(committed(name)["cells"][0]["source"])
        assert page.splitlines()[0] == first.splitlines()[0]
        assert f"```{{notebook}} {name}\n```" in page


def test_what_cells_show_is_read_and_a_change_is_noticed() -> None:
    stream = {"output_type": "stream", "text": ["a\n", "b\n"]}
    value = {"output_type": "execute_result", "data": {"text/plain": "<f at 0x7f00>"}}
    drawn = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}}
    notebook = {"cells": [{"outputs": [stream, value]}, {"outputs": [drawn]}, {}]}
    assert notebooks.shown(notebook) == ["a\nb\n", "<f>", "image/png"]
    assert notebooks.shown({"cells": [{"outputs": [stream, stream, value, stream]}]}) == ["a\nb\n" * 2, "<f>", "a\nb\n"]
    stream["text"] = "a\nc\n"
    assert notebooks.shown(notebook)[0] == "a\nc\n"


def test_a_notebook_becomes_markdown() -> None:
    from site_parts.notebooks import html_of, page_lines

    shown = [
        {"output_type": "stream", "text": "1\n"},
        {"output_type": "execute_result", "data": {"text/plain": "2"}},
        {"output_type": "display_data", "data": {"image/png": "AA\nAA", "text/plain": "<Figure>"}},
    ]
    cells = [
        {"cell_type": "markdown", "source": "# Title\n\nText."},
        {"cell_type": "code", "source": "f()", "execution_count": 3, "outputs": shown},
    ]
    text = "\n".join(page_lines({"cells": cells}))
    code = "```{code-block} python\n:caption: In[3]\n\nf()\n```"
    assert text.startswith(f"Text.\n\n{code}\n\n````text\n1\n````\n\n````text\n2\n````\n")
    assert 'src="data:image/png;base64,AAAA"' in text and "# Title" not in text
    assert re.sub(r"\s", "", html_of({"text/html": '<b style="color: #008000">x</b>'})) == (
        '<divclass="output"><bstyle="">x</b></div>'
    )
