"""Writes the pictures of `pyshardy report` on the pages: `python docs/pictures.py`, which needs a Chromium.

They change with fonts and browsers, so that no test compares them.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import pyshardy  # noqa: E402
from pyshardy.results.pages import report_bytes  # noqa: E402
from support.browser import chromium, find_chromium  # noqa: E402
from support.programs import load_example  # noqa: E402

FOLDER = ROOT / "docs/images"
WIDTH, HEIGHT = 1180, 780


def main() -> int:
    """Write the pictures."""
    path = find_chromium()
    if path is None:
        print("error: writing pictures: got no Chromium, needed one, or its path in PYSHARDY_CHROMIUM", file=sys.stderr)
        return 1
    transformer = load_example("transformer")
    lowered = transformer.lower(transformer.Config(layers=24))
    result = pyshardy.propagate(lowered, trace=True)
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium(path) as browser:
        page = Path(folder, "report.html")
        page.write_bytes(report_bytes([result], names=["a transformer's training step"]))
        browser.look(WIDTH, HEIGHT)
        browser.open(page)
        browser.screenshot(FOLDER / "report.png")
        browser.run("location.hash = '#0/program'")
        browser.wait("document.querySelector('[role=treeitem]')")
        browser.run("document.querySelector('[role=treeitem] > .row').click()")
        browser.run(
            "[...document.querySelectorAll('.row')].find((row) => row.textContent.includes(\"['w2']\")).click()"
        )
        browser.wait("document.getElementById('selected')")
        browser.run("await new Promise((done) => setTimeout(done, 200))")
        browser.screenshot(FOLDER / "report-program.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
