"""Writes the pictures on the pages: `python docs/pictures.py`, which needs a Chromium and Pillow.

They change with fonts and browsers, so that no test compares them. Each is written for light and for dark pages.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

from PIL import Image  # noqa: E402

import pyshardy  # noqa: E402
from pyshardy.report.cost import cost_figures  # noqa: E402
from pyshardy.results.pages import report_bytes  # noqa: E402
from support.browser import Browser, chromium, find_chromium  # noqa: E402
from support.programs import load_example  # noqa: E402

FOLDER = ROOT / "docs/images"
WIDTH, HEIGHT = 1180, 780
TEXT_WIDTH = 1080
SCHEMES = ("light", "dark")
COLOURS = 128
"""The number of colours of a picture, so that it stays small."""
CHIP = "v5e"

STYLE = """
body { margin: 0; color-scheme: light dark; background: light-dark(#fff, #0d1117); color: light-dark(#1f2328, #e6edf3) }
main { border: 1px solid light-dark(#d1d9e0, #3d444d); border-radius: 8px; overflow: hidden; margin: 1px }
header { font: 15px sans-serif; padding: .7em 1.1em; background: light-dark(#f6f8fa, #151b23);
         border-bottom: 1px solid light-dark(#d1d9e0, #3d444d) }
pre { font: 14px/1.45 "DejaVu Sans Mono", monospace; margin: 0; padding: 1em 1.1em; white-space: pre-wrap }
.add { background: light-dark(#dafbe1, #12261e) } .cut { background: light-dark(#ffebe9, #25171c) }
.head { font-weight: bold } span { display: block; min-height: 1.45em }
"""
MODEL = """import jax
from jax.sharding import PartitionSpec as P


def gated(gate, value, residual):
    hidden = gate * value
    hidden = jax.lax.with_sharding_constraint(hidden, P(None, ("data", "model")))
    return residual + hidden


def step(params, x):
    with jax.named_scope("mlp"):
        hidden = jax.lax.with_sharding_constraint(jax.numpy.tanh(x @ params["w1"]), P("data", "model"))
        return hidden @ params["w2"]
"""
"""Models: no compiler can bring the activation of the first from one sharding to the other step by step."""


def card(title: str, text: str) -> bytes:
    """A page with a text as a terminal or a review shows it."""
    lines = "".join(f"<span{_look(line)}>{escape(line)}</span>" for line in text.rstrip().splitlines())
    head = f"<!doctype html><meta charset=utf-8><style>{STYLE}</style>"
    return f"{head}<main id=main><header>{escape(title)}</header><pre>{lines}</pre></main>".encode()


def _look(line: str) -> str:
    found = {"+": "add", "-": "cut"}.get(line[:1]) or (
        "head" if re.fullmatch(r"[a-z]+|\S.* differs from .*", line) else ""
    )
    return f' class="{found}"' if found else ""


def cards(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the page of every picture that is no view of a report."""
    os.chdir(folder)  # paths in texts are relative
    (folder / "model.py").write_text(MODEL)
    sys.path.insert(0, str(folder))
    import jax
    import model  # type: ignore[import-not-found]
    from jax.sharding import PartitionSpec

    shape = jax.ShapeDtypeStruct((64, 2048, 1024), "bfloat16")
    spec = PartitionSpec("model", None, "data")
    module = pyshardy.load(
        model.gated, shape, shape, shape, mesh={"data": 4, "model": 2}, in_shardings=(spec, spec, None), platform="cpu"
    )
    partition = pyshardy.partition(module, compiler="cpu")
    remedies = partition.remedies()
    told = "\n\n".join(str(one) for one in (*partition.replications, *remedies))
    yield "replication", card("what the compiler gathers whole, and what helps", told)

    sizes = {"w1": jax.ShapeDtypeStruct((64, 256), "float32"), "w2": jax.ShapeDtypeStruct((256, 64), "float32")}
    specs = {"w1": PartitionSpec(None, "model"), "w2": None}, PartitionSpec("data")
    batch = jax.ShapeDtypeStruct((32, 64), "float32")
    before = pyshardy.load(model.step, sizes, batch, mesh={"data": 4, "model": 2}, in_shardings=specs)
    pyshardy.write_lock(before, "shardings.lock", hardware=CHIP)
    found = pyshardy.check(before.annotate({"params['w1']": "model,None"}), "shardings.lock", name="step.mlir")
    yield "review", card("github-actions commented on this pull request", str(found))


def main() -> int:
    """Write the pictures."""
    path = find_chromium()
    if path is None:
        print("error: writing pictures: got no Chromium, needed one, or its path in PYSHARDY_CHROMIUM", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, chromium(path) as browser:
        folder = Path(name)
        views(browser, folder)
        for picture, content in cards(folder):
            page = folder / f"{picture}.html"
            page.write_bytes(content)
            for scheme in SCHEMES:
                browser.look(TEXT_WIDTH, 100, scheme)
                browser.open(page)
                height = browser.run("return document.getElementById('main').offsetHeight + 2")
                browser.look(TEXT_WIDTH, height, scheme)
                taken(browser, picture, scheme)
    return 0


def views(browser: Browser, folder: Path) -> None:
    """The pictures of a report of a training step."""
    transformer = load_example("transformer")
    result = pyshardy.propagate(transformer.lower(transformer.Config(layers=24)), trace=True)
    cost = pyshardy.cost(result, CHIP)
    page = folder / "report.html"
    figures = [cost_figures(cost.estimate)]
    page.write_bytes(report_bytes([cost.partition], names=["a transformer's training step"], figures=figures))
    for scheme in SCHEMES:
        browser.look(WIDTH, HEIGHT, scheme)
        browser.open(page)
        taken(browser, "report", scheme)
        browser.run("location.hash = '#0/collectives'")
        browser.wait("document.querySelector('#main li')")
        browser.look(WIDTH, 600, scheme)
        taken(browser, "report-collectives", scheme)
        browser.look(WIDTH, HEIGHT, scheme)
        browser.run("location.hash = '#0/program'")
        browser.wait("document.querySelector('[role=treeitem]')")
        browser.run("document.querySelector('[role=treeitem] > .row').click()")
        browser.run(
            "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes(\"['w2']\")).click()"
        )
        browser.wait("document.getElementById('selected')")
        browser.run("await new Promise((done) => setTimeout(done, 200))")
        taken(browser, "report-program", scheme)


def taken(browser: Browser, name: str, scheme: str) -> None:
    """Write what the browser shows."""
    path = FOLDER / f"{name}{'' if scheme == 'light' else '-dark'}.png"
    browser.screenshot(path)
    with Image.open(path) as image:
        image.convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
