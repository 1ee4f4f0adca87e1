"""Dumps by environment variable and `--dump-to`, and the debug attributes in them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.ir.module import Module
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.exporting.remove_propagation_debug_info import RemovePropagationDebugInfo
from pyshardy.passes.flow import propagation_passes
from pyshardy.passes.options import format_options
from pyshardy.results.dumps import DUMP_VARIABLE, meaning_of
from support.reference import jaxlib_version, run_reference

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
PRIORITIES = """
module @jit_f {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func @main(%x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}p1, {"b"}p0]>})
      -> tensor<16x32xf32> {
    %0 = stablehlo.sine %x : tensor<16x32xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {?}]> : tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
}
"""
PROPAGATED = ["00.input_module", "01.before_propagation", "02.after_propagation", "03.after_partitioner_passes"]
PARTITIONED = [*PROPAGATED[:3], "03.after_explicit_reshards", "04.after_partitioner_passes"]
BOTH = [*PROPAGATED, "04.after_explicit_reshards", "05.after_partitioner_passes"]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "not" / "there yet"
    monkeypatch.setenv(DUMP_VARIABLE, str(found))
    return found


def files(directory: Path) -> dict[str, list[str]]:
    return {
        program.name: sorted(path.name.removesuffix(".mlir") for path in program.iterdir())
        for program in sorted((directory / "shardy").iterdir())
    }


def test_every_program_has_a_folder_of_its_own(directory: Path) -> None:
    result = pyshardy.propagate(MLP)
    pyshardy.partition(MLP)
    pyshardy.partition(pyshardy.propagate(PRIORITIES))
    rounds = ["02.propagation_after_user_priority_0"]
    assert files(directory) == {
        "module_0000.module": PROPAGATED,
        "module_0001.module": PARTITIONED,
        "module_0002.jit_f": sorted([*BOTH, *rounds]),
    }
    text = (directory / "shardy/module_0000.module/02.after_propagation.mlir").read_text()
    assert pyshardy.load(text).text() == text
    assert [str(tensor.sharding) for tensor in pyshardy.propagate(text).inputs] == [
        str(tensor.sharding) for tensor in result.inputs
    ]
    last = (directory / "shardy/module_0002.jit_f/05.after_partitioner_passes.mlir").read_text()
    assert "tensor<8x8xf32>" in last and "tensor<16x32xf32>" not in last


def test_looking_at_results_dumps_nothing_more(directory: Path) -> None:
    partition = pyshardy.partition(PRIORITIES)
    before = files(directory)
    assert str(partition.propagated) and partition.propagated.values and partition.why and partition.hints() == ()
    partition.propagated.after_priority(0)
    pyshardy.propagate(partition)
    assert files(directory) == before


def test_the_dump_is_one_that_can_be_shown_and_compared(directory: Path, tmp_path: Path) -> None:
    from pyshardy.results.decided import compare, dump_shardings

    given = pyshardy.propagate(MLP)
    again = pyshardy.propagate(pyshardy.load(directory, module="module_0000.module"))
    assert [tensor.name for tensor in again.inputs] == [tensor.name for tensor in given.inputs]
    found = compare(again.module, dump_shardings(directory, "module_0000.module"))
    assert found.differences == ()
    wrong = MLP.read_text().replace('[{"data"}, {}]', "[{}, {}]")
    assert compare(pyshardy.propagate(wrong).module, dump_shardings(directory, "module_0000.module")).differences


def test_the_index_names_every_file_and_what_it_is(directory: Path) -> None:
    pyshardy.partition(pyshardy.propagate(PRIORITIES))
    pyshardy.propagate(MLP)
    page = (directory / "index.html").read_text()
    links = re.findall(r'href="([^"]+)"', page)
    assert links == [f"shardy/{program}/{name}.mlir" for program, names in files(directory).items() for name in names]
    assert all((directory / link).is_file() for link in links)
    assert all(meaning_of(Path(link).name) for link in links)
    assert "after the round of user priority 0" in page and "the program of one device" in page
    assert f"pyshardy show {directory}::module_0001.module" in page
    assert meaning_of("other.mlir") == ""


def test_options_that_name_a_folder_count_more(directory: Path, tmp_path: Path) -> None:
    pyshardy.propagate(MLP, dump_directory=tmp_path)
    assert not directory.exists()
    assert sorted(path.name for path in tmp_path.glob("*.mlir")) == [f"{name}.mlir" for name in PROPAGATED[1:]]


def test_a_place_that_cannot_be_written_to_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(DUMP_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(UsageError, match="writing dumps to .*file: got"):
        pyshardy.propagate(MLP)
    monkeypatch.setenv(DUMP_VARIABLE, "")
    pyshardy.propagate(MLP)


def test_origins_and_edges_are_in_dumps_and_results(directory: Path) -> None:
    result = pyshardy.propagate(PRIORITIES, origins=True, edges=True)
    dumped = (directory / "shardy/module_0000.jit_f/02.after_propagation.mlir").read_text()
    for text in (dumped, result.module.text()):
        assert 'sdy.sharding_origins = {a = "self", b = "self"}' in text
        assert 'sdy.sharding_origins = [{a = "input: 0", b = "input: 0"}]' in text
        assert 'step-0 = [{"b" = operand-0 -> [result-0]}]' in text
    result.module.verify()
    plain = pyshardy.propagate(PRIORITIES)
    assert "origins" not in plain.module.text() and "edges" not in plain.module.text()
    assert [tensor.sharding for tensor in plain.outputs] == [tensor.sharding for tensor in result.outputs]
    only = pyshardy.propagate(PRIORITIES, edges=True).module.text()
    assert "propagation_edges" in only and "origins" not in only


def test_debug_attributes_are_no_part_of_what_runs() -> None:
    result = pyshardy.propagate(PRIORITIES, origins=True, edges=True)
    array = np.arange(512, dtype=np.float32).reshape(16, 32) / 512
    for engine in ("xla", "local"):
        np.testing.assert_allclose(result.run(array, engine=engine)[0], np.sin(array), rtol=1e-5)
    given = result.module.text()  # with attributes that were written before
    for view in ("xla", "stablehlo"):
        text = pyshardy.partition(given, view=view).module.text()
        assert "origins" not in text and "edges" not in text
    pyshardy.propagate(given).module.verify()


def as_text(pass_: Pass) -> str:
    """A pass in a pipeline of MLIR."""
    text = f"{pass_.name}{{{options}}}" if (options := format_options(pass_)) else pass_.name
    return f"func.func({text})" if pass_.anchor is Anchor.FUNCTION else text


@pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older versions have other passes in another order")
def test_the_attributes_are_those_of_the_reference(tmp_path: Path) -> None:
    options = pyshardy.PropagateOptions(view="stablehlo", origins=True, edges=True)
    passes = propagation_passes(options)
    names = [pass_.name for pass_ in passes]
    upto = names.index("sdy-close-shardings") + 1
    assert RemovePropagationDebugInfo.name not in names
    first, *others = passes[:upto]
    assert first.name == "pyshardy-tell-copies-apart"  # there are no copies here
    pipeline = ",".join(map(as_text, others))
    dumped = tmp_path / "02.after_propagation.mlir"
    pyshardy.propagate(PRIORITIES, options, dump_directory=tmp_path)
    assert Module.parse(dumped.read_text()).text(generic=True).strip() == run_reference(PRIORITIES, pipeline).strip()
