"""The code in the README and on the pages of `docs` runs and prints what it shows; links lead somewhere; the differences are all listed."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import drawings
import executed
import pytest
from site_parts import listing, raised

import pyshardy
from pyshardy.cli.arguments import make_parser
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.passes.table import PASSES
from pyshardy.rules.user_rules import USER_RULES, unregister_rule
from support.citations import anchors
from support.reference import jaxlib_version
from support.tables import column

from .differential.notation_compare import KNOWN_DIFFERENCES

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DIFFERENCES = (ROOT / "docs/differences.md").read_text()
PAGES = {
    path: path.read_text()
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if path.name not in ("CHANGELOG.md", "passes.md")
}
"""All pages but the one that is written by `docs/generate.py`; links in that one lead to itself."""

NOT_EXECUTED = {"maxtext.md"}
"""Pages of which nothing runs, and which say so: MaxText needs an environment of its own."""


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language; what a reader is not to run is marked `no-run`."""
    found = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    return [block for text in PAGES.values() for block in found.findall(text)]


def run_generator(code: str) -> str:
    """What code that uses `docs/generate.py` prints."""
    command = [sys.executable, "-c", f"import generate; {code}"]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "docs", check=True).stdout


def test_pages_are_written_one_by_one() -> None:
    show = "generate.filled = lambda path: print(path.name) or path.read_text(); "
    assert run_generator(show + "generate.write(generate.ROOT / 'README.md')") == "README.md\n"
    assert {"README.md", "passes.md", "CONTRIBUTING.md", "zero.md"} < set(
        run_generator(show + "generate.drawings = dict; generate.write()").split()
    )
    with pytest.raises(subprocess.CalledProcessError, match="exit status 1"):
        run_generator("generate.write('nothing.md')")


@pytest.mark.parametrize("block", blocks("console"))
def test_console_example(block: str) -> None:
    """What the page shows is what `docs/generate.py` would write there."""
    found = run_generator(f"print(generate.with_outputs({f'```console{chr(10)}{block}```'!r}))")
    assert found == f"```console\n{block}```\n", "run `python docs/generate.py`"


def test_the_first_example_of_the_readme_runs_as_it_is_pasted() -> None:
    """In a process that knows nothing of the devices of this one."""
    code = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
    environment = {
        name: value for name, value in os.environ.items() if name not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    }
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    assert column(found.stdout, "inputs", "sharding") == ["P(None, 'model')", "P('model')", "P('data')"]


def grouped() -> list[tuple[str, list[executed.Block]]]:
    """The blocks of Python that run together, with the name of their page."""
    return [(path.name, group) for path, text in PAGES.items() for group in executed.groups(text)]


@pytest.mark.parametrize(("page", "group"), grouped())
def test_python_example(page: str, group: list[executed.Block]) -> None:
    assert any("\nassert " in block.code or block.printed for block in group), f"nothing is compared on {page}"
    try:
        for block, found in zip(group, executed.outputs(group), strict=True):
            assert block.printed is None or executed.matches(block.printed, found), found
    finally:
        for name in list(USER_RULES):
            unregister_rule(name)


def test_there_are_examples_and_a_wrong_one_is_noticed() -> None:
    assert blocks("console") and grouped()
    changed = "```console\n$ echo right\nwrong\n```"
    assert run_generator(f"print(generate.with_outputs({changed!r}))") == "```console\n$ echo right\nright\n```\n"
    assert executed.matches("a\n...\nb\n", "a\nx\ny\nb\n")
    assert not executed.matches("a\n...\nb\n", "a\nx\ny\nc\n")


def test_output_of_python_is_read_and_a_wrong_one_is_noticed() -> None:
    page = "```python\nx = 1\n```\n\n```python next\nprint(x)\n```\n\nprints\n\n```text\n2\n```\n"
    (group,) = executed.groups(page)
    assert [block.printed for block in group] == [None, "2\n"]
    assert executed.outputs(group) == ["", "1\n"]
    assert not executed.matches("2\n", "1\n")
    assert executed.with_output(page) == page.replace("2\n", "1\n")


def test_blocks_with_packages_are_apart() -> None:
    page = "```python\nx = 1\n```\n\n```python packages\nprint(3)\n```\n\nprints\n\n```text\n2\n```\n"
    (group,) = executed.groups(page)
    assert [block.code for block in group] == ["x = 1\n"]
    (group,) = executed.groups(page, packages=True)
    assert [block.printed for block in group] == ["2\n"]
    assert executed.with_output(page) == page
    assert executed.with_output(page, packages=True) == page.replace("2\n", "3\n")


def test_pages_for_readers_show_something_that_runs() -> None:
    for path, text in PAGES.items():
        if path.parent.name in ("start", "concepts", "how-to", "coming-from") and path.name not in NOT_EXECUTED:
            groups = executed.groups(text) or executed.groups(text, packages=True)
            assert groups or re.search(r"^```console( packages)?$", text, re.MULTILINE), path


def test_pictures_are_small_and_exist_for_dark_pages() -> None:
    folder = ROOT / "docs/images"
    light = {path.stem for path in folder.glob("*.png") if not path.stem.endswith("-dark")}
    assert {f"{name}-dark" for name in light} == {path.stem for path in folder.glob("*-dark.png")}
    assert max(path.stat().st_size for path in folder.glob("*.png")) < 100_000
    shown = {name for text in PAGES.values() for name in re.findall(r"images/([\w-]+)\.png", text)}
    assert light <= shown <= light | {f"{name}-dark" for name in light}


def test_drawings_are_those_of_the_generator() -> None:
    shown = {target for text in PAGES.values() for target in re.findall(r"/drawings/([\w-]+)\.svg\)", text)}
    assert shown == set(drawings.DRAWINGS)
    for path, text in drawings.drawings().items():
        assert path.read_text() == text, "run `python docs/generate.py`"


def test_the_drawn_step_is_what_a_step_does() -> None:
    first, second, result = (f"#sdy.sharding<@mesh, {each}>" for each in drawings.PRODUCT_BEFORE)
    module = Module.parse(f"""
      sdy.mesh @mesh = <["data"=4, "model"=2]>
      func.func @main(%x: tensor<32x64xf32> {{sdy.sharding = {first}}}, %w: tensor<64x256xf32> {{sdy.sharding = {second}}})
          -> (tensor<32x256xf32> {{sdy.sharding = {result}}}) {{
        %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
            : (tensor<32x64xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
        return %0 : tensor<32x256xf32>
      }}""")
    after = run_pipeline(module, "sdy-basic-propagate").text()
    (signature,) = [line for line in after.splitlines() if "func.func" in line]
    assert re.findall(r"#sdy\.sharding<@mesh, (.*?)>", signature) == list(drawings.PRODUCT_AFTER)


def test_the_reference_lists_what_is_exported_and_every_option() -> None:
    exported = re.findall(r"^\.\. auto\w+:: pyshardy\.(\w+)$", "\n".join(listing.api_lines()), re.MULTILINE)
    assert sorted(exported) == pyshardy.__all__
    for path in listing.PARTS:
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(f"pyshardy.{module}"), name).__doc__, path
    shown = "\n".join(listing.command_lines())
    for name, parser in listing.commands(make_parser()).items():
        section = shown.partition(f"## `pyshardy {name}`\n")[2].partition("\n## ")[0]
        options = [option for action in parser._actions for option in action.option_strings]
        assert {option for option in options if f"`{option}" not in section} == {"-h", "--help"}


def error_classes(base: type[pyshardy.ShardyError]) -> set[str]:
    """The names of a class of errors and of all that extend it, but for those that users never see."""
    kinds = {base.__name__} - {"StepError"}  # a bug in pyshardy itself
    return kinds.union(*(error_classes(kind) for kind in base.__subclasses__()))


def test_every_class_of_errors_is_explained() -> None:
    page = PAGES[ROOT / "docs/reference/errors.md"]
    table = page.partition("| class | what is wrong | what to do |\n")[2].partition("\n\n")[0]
    kinds = error_classes(pyshardy.ShardyError)
    assert {"UsageError", "PassError"} < kinds
    assert {kind for kind in kinds if f"| `{kind}`" not in table} == {"ShardyError"}


def test_the_list_of_messages_has_what_errors_say() -> None:
    listed = raised.messages()
    assert len({message.doing for message in listed}) > 100

    def is_listed(error: pyshardy.ShardyError) -> bool:
        """Whether a message fits: its beginning, what is needed, and the class."""
        return any(
            message.kind == type(error).__name__
            and fits(message.doing, error.doing)
            and fits(message.needed, error.needed or "")
            for message in listed
        )

    def fits(text: str, said: str) -> bool:
        """Whether a text that is listed may become what is said."""
        return re.fullmatch(".*".join(map(re.escape, text.split(raised.ANY))), said, re.DOTALL) is not None

    for action in (
        lambda: pyshardy.load(7),
        lambda: pyshardy.Mesh([("x", 2), ("x", 2)]),
        lambda: pyshardy.unregister_rule("@f"),
        lambda: pyshardy.run_pipeline(pyshardy.load("examples/mlp.mlir"), "sdy-propagate"),
        lambda: pyshardy.partition("examples/mlp.mlir").run(),
    ):
        with pytest.raises(pyshardy.ShardyError) as caught:
            action()
        assert is_listed(caught.value), str(caught.value)
    assert not is_listed(pyshardy.UsageError("doing what nothing does", needed="this"))


def test_the_citation_names_the_version() -> None:
    assert f"\nversion: {pyshardy.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_links_lead_somewhere() -> None:
    links = [(path, target) for path, text in PAGES.items() for target in re.findall(r"\]\((?!http)([^)]+)\)", text)]
    assert len(links) > 10
    for path, target in links:
        file, _, anchor = target.partition("#")
        page = path.parent / file if file else path
        assert page.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(page.read_text()), f"{path.name}: {target}"


def test_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", README)) <= targets


# docs/differences.md


def paths_named() -> set[str]:
    return set(re.findall(r"`(tests/[^`]+)`", DIFFERENCES))


def test_differences_name_tests_that_exist() -> None:
    assert len(paths_named()) > 10
    for path in paths_named():
        assert (ROOT / path).exists(), path


def test_file_checks_that_differ_are_listed() -> None:
    differing = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests/filecheck").rglob("*.mlir")
        if re.search("^// (DIFFERS|UNDEFINED): ", path.read_text(), re.MULTILINE)
    }
    listed = {path for path in paths_named() if path.endswith(".mlir")}
    assert differing and differing <= listed


def test_differences_in_the_notation_are_listed() -> None:
    section = DIFFERENCES.partition("## Notation")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (.*?) \|", section, re.MULTILINE)[1:] == list(KNOWN_DIFFERENCES)


# docs/passes.md


def test_the_page_of_passes_is_what_the_passes_give() -> None:
    """On an older jaxlib, whose dialects print otherwise, the page is only made."""
    found = run_generator("print(generate.page(), end='')")
    if jaxlib_version() >= (0, 12):
        assert found == (ROOT / "docs/passes.md").read_text(), "run `python docs/generate.py`"
    assert found.count("\n## `") == len(PASSES)


def test_every_example_of_a_pass_shows_something() -> None:
    examples = {path.stem: Module.parse(path.read_text()) for path in (ROOT / "docs/examples").iterdir()}
    assert set(examples) == set(PASSES)
    pipelines = dict(re.findall(r"^after `(([\w-]+)[^`]*)`$", (ROOT / "docs/passes.md").read_text(), re.MULTILINE))
    unchanged = [
        name
        for pipeline, name in pipelines.items()
        if run_pipeline(examples[name], pipeline).text() == examples[name].text()
    ]
    assert len(pipelines) == len(PASSES)
    assert unchanged == ["sdy-verify-unreduced-axes"]  # which only refuses


# The site


def test_what_a_page_fetches_is_noticed() -> None:
    pytest.importorskip("sphinx", reason="needs Sphinx, which `make docs` installs")
    from site_parts.offline import fetched

    assert fetched('<a href="https://openxla.org">a link</a> <img src="data:image/png;base64,AA//">') == []
    for text in (
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/a.css">',
        "<img alt='' src='http://example.org/a.png'>",
        "a { background: url(https://example.org/a.png) }",
        '@import "https://example.org/a.css";',
    ):
        assert len(fetched(text)) == 1, text
