"""Dumps: the files that pipelines write on the way, compared with those of the reference."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pyshardy.api.load import load
from pyshardy.api.propagate import propagate
from pyshardy.ir.module import Module
from pyshardy.passes.common.save_module import SaveModule
from pyshardy.passes.flow import propagation_passes
from pyshardy.passes.pipeline import run_passes, run_pipeline
from pyshardy.passes.propagating.user_priority_propagate import UserPriorityPropagate
from pyshardy.propagation.options import PropagateOptions
from support.reference import jaxlib_version, run_reference

needs_newest = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the pipelines of older versions have other passes in another order"
)
PROGRAM = """
sdy.mesh @m = <["a"=2, "b"=4]>
func.func @main(%lhs: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}, {"b"}]>},
                %rhs: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) -> tensor<16x8xf32> {
  %0 = stablehlo.dot %lhs, %rhs : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32> loc("here")
  %1 = sdy.sharding_constraint %0 <@m, [{"a"}, {"b"}]> : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}
"""
PRIORITIES = """
sdy.mesh @m = <["a"=2, "b"=4, "c"=2]>
func.func @main(%x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", ?}p1, {"b"}p0]>},
                %y: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@m, [{"c"}p2, {?}]>}) -> tensor<16x32xf32> {
  %0 = stablehlo.add %x, %y : tensor<16x32xf32>
  %1 = stablehlo.sine %0 : tensor<16x32xf32>
  %2 = stablehlo.negate %0 : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
"""
ROUNDS = [f"propagation_after_user_priority_{priority}.mlir" for priority in range(2)]
EXPORT = ["00.after_propagation.mlir", "01.after_partitioner_passes.mlir"]
PROPAGATION = ["01.before_propagation.mlir", "02.after_propagation.mlir", "03.after_partitioner_passes.mlir"]


def files_in(folder: Path) -> dict[str, str]:
    """The files of a folder with their content, in order."""
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


@needs_newest
@pytest.mark.parametrize("options", ["", "keep-sharding-rules=true", "avoid-export-for-partitioning=true"])
def test_the_export_pipeline_writes_the_files_of_the_reference(tmp_path: Path, options: str) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    before = "sdy-import-pipeline,sdy-basic-propagate{keep-sharding-rules=true}"
    run_pipeline(Module.parse(PROGRAM), f"{before},sdy-export-pipeline{{dump-directory={ours} {options}}}")
    run_reference(PROGRAM, f"{before},sdy-export-pipeline{{dump-directory={theirs} {options}}}")
    assert list(files_in(ours)) == (EXPORT[:1] if "avoid" in options else EXPORT)
    assert files_in(ours) == files_in(theirs)


def test_the_propagation_pipeline_writes_files(tmp_path: Path) -> None:
    module = Module.parse(PROGRAM)
    given = module.text()
    passes = propagation_passes(PropagateOptions(dump_directory=str(tmp_path)))
    indices = [index for index, pass_ in enumerate(passes) if isinstance(pass_, SaveModule)]
    result = run_passes(module, passes)
    files = files_in(tmp_path)
    assert list(files) == PROPAGATION
    for index, text in zip(indices, files.values()):
        assert run_passes(Module.parse(PROGRAM), passes[:index]).text() == text
    assert files[PROPAGATION[0]] != files[PROPAGATION[1]]
    plain = propagation_passes(PropagateOptions())
    kept = [pass_ for pass_ in passes if not isinstance(pass_, SaveModule)]
    propagate = next(pass_ for pass_ in kept if isinstance(pass_, UserPriorityPropagate))
    assert (propagate.module_dump_directory, propagate.module_dump_index) == (str(tmp_path), 2)
    quiet = replace(propagate, module_dump_directory="", module_dump_index=0)
    assert [quiet if pass_ is propagate else pass_ for pass_ in kept] == plain
    assert result.text() == run_passes(module, plain).text()
    assert module.text() == given


def test_propagation_from_python_writes_files(tmp_path: Path) -> None:
    (tmp_path / PROPAGATION[0]).write_text("old")
    module = load(PROGRAM)
    result = propagate(module, PropagateOptions(dump_directory=str(tmp_path)))
    files = files_in(tmp_path)
    assert list(files) == PROPAGATION
    assert 'sdy.sharding_constraint %0 <@m, [{"a"}, {"b"}]>' in files[PROPAGATION[0]]
    assert "sdy.sharding_rule" in files[PROPAGATION[2]]
    without_rules = run_pipeline(Module.parse(files[PROPAGATION[2]]), "sdy-drop-sharding-rules")
    assert without_rules.text() == result.module.text()
    assert not any("loc(" in text for text in files.values())


def test_what_cannot_be_written_is_said_and_the_pipeline_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing, blocked = tmp_path / "missing", tmp_path / "blocked"
    (blocked / EXPORT[1]).mkdir(parents=True)
    plain = run_pipeline(Module.parse(PROGRAM), "sdy-export-pipeline").text()
    assert run_pipeline(Module.parse(PROGRAM), f"sdy-export-pipeline{{dump-directory={missing}}}").text() == plain
    lines = [f"error when writing file {missing / name}: No such file or directory" for name in EXPORT]
    assert capsys.readouterr().err.splitlines() == lines
    assert not missing.exists()
    assert run_pipeline(Module.parse(PROGRAM), f"sdy-export-pipeline{{dump-directory={blocked}/}}").text() == plain
    assert capsys.readouterr().err == f"error when writing file {blocked / EXPORT[1]}: Is a directory\n"
    assert (blocked / EXPORT[0]).is_file()


@needs_newest
def test_the_reference_says_the_same_of_what_cannot_be_written(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline = f"sdy-export-pipeline{{dump-directory={tmp_path / 'missing'}}}"
    run_reference(PROGRAM, pipeline)
    theirs = capfd.readouterr().err
    run_pipeline(Module.parse(PROGRAM), pipeline)
    assert capfd.readouterr().err == theirs != ""


@needs_newest
@pytest.mark.parametrize("options", ["", "keep-sharding-rules=true "])
@pytest.mark.parametrize("program", ["user", "op", "aggressive", "basic"])
def test_propagation_writes_the_files_of_the_reference(tmp_path: Path, program: str, options: str) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    name = {"user": "user-priority", "op": "op-priority"}.get(program, program)
    pipeline = f"sdy-{name}-propagate{{{options}module-dump-directory="
    result = run_pipeline(Module.parse(PRIORITIES), f"{pipeline}{ours}}}").text(generic=True).strip()
    assert result == run_reference(PRIORITIES, f"{pipeline}{theirs}}}").strip()
    assert list(files_in(ours)) == ([f"00.{name}" for name in ROUNDS] if program == "user" else [])
    assert files_in(ours) == files_in(theirs)


def test_dumps_between_priorities_show_what_is_known_then(tmp_path: Path) -> None:
    passes = propagation_passes(PropagateOptions(dump_directory=str(tmp_path)))
    result = run_passes(Module.parse(PRIORITIES), passes)
    plain = run_passes(Module.parse(PRIORITIES), propagation_passes(PropagateOptions()))
    assert result.text(debug_info=True) == plain.text(debug_info=True)
    files = files_in(tmp_path)
    names = [f"02.{name}" for name in ROUNDS]
    assert list(files) == [PROPAGATION[0], PROPAGATION[1], *names, PROPAGATION[2]]
    first, second = (files[name] for name in names)
    assert 'sdy.sharding<@m, [{}, {"b"}], replicated={"a"}>' in first
    assert 'stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{?}, {"b", ?}]>]>' in first
    assert 'stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a", ?}, {"b", ?}]>]>' in second
    assert "sdy.sharding_rule" in first and "stablehlo.negate" not in first


def test_without_priorities_there_is_nothing_between_them(tmp_path: Path) -> None:
    one = PRIORITIES.replace("}p2", "}").replace("?}p1", "?}")
    run_pipeline(Module.parse(one), f"sdy-user-priority-propagate{{module-dump-directory={tmp_path}}}")
    assert files_in(tmp_path) == {}
    no_turns = PropagateOptions(dump_directory=str(tmp_path), user_priorities=False)
    run_passes(Module.parse(PRIORITIES), propagation_passes(no_turns))
    assert list(files_in(tmp_path)) == PROPAGATION


def test_dumps_follow_links_and_names_that_no_file_has_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "00.here.mlir").symlink_to("target")
    module = Module.parse(PROGRAM)
    run_passes(module, [SaveModule(str(tmp_path), 0, "here"), SaveModule(str(tmp_path), 0, "a\0b")])
    assert (tmp_path / "00.here.mlir").is_symlink()
    assert (tmp_path / "target").read_text().startswith("module {")
    message = f"error when writing file {tmp_path}/00.a\0b.mlir: a name that no file can have\n"
    assert capsys.readouterr().err == message
