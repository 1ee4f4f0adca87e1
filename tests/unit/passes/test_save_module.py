"""Dumps: the files that pipelines write on the way, compared with those of the reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.api import load, propagate
from pyshardy.ir.module import Module
from pyshardy.passes.common.save_module import SaveModule
from pyshardy.passes.pipeline import run_passes, run_pipeline
from pyshardy.passes.pipelines import propagation_passes
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
    assert [pass_ for pass_ in passes if not isinstance(pass_, SaveModule)] == plain
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
