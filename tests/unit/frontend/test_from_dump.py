from __future__ import annotations

import re
from pathlib import Path

import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.frontend.from_dump import argument_names, dumped_modules, is_dump, split_source
from pyshardy.results.decided import compare, dump_shardings

from .hlo_texts import DECIDED, GSPMD, INPUT, NAMED, write_dump

OUTPUT = '<@mesh, [{"data"}, {}]>'


def test_what_xla_hands_to_shardy_with_the_names_of_the_hlo(tmp_path: Path) -> None:
    result = pyshardy.propagate(pyshardy.load(write_dump(tmp_path, input=INPUT, hlo=GSPMD)))
    assert [tensor.name for tensor in result.inputs] == ["x", "params['w']"]
    assert str(result.outputs[0].sharding) == OUTPUT


@pytest.mark.parametrize("files", [{"hlo": GSPMD}, {"mlir": INPUT}, {"input": INPUT}])
def test_the_other_files(files: dict[str, str], tmp_path: Path) -> None:
    result = pyshardy.propagate(
        pyshardy.load(write_dump(tmp_path, **files), mesh="data=4,model=2" if "hlo" in files else None)
    )
    assert str(result.outputs[0].sharding) == OUTPUT
    assert [tensor.name for tensor in result.inputs] == (["x", "params['w']"] if "hlo" in files else ["arg0", "arg1"])


def test_names_that_are_not_for_all_arguments_are_not_used(tmp_path: Path) -> None:
    hlo = GSPMD.replace("parameter(1), metadata", "parameter(1), nothing")
    result = pyshardy.propagate(pyshardy.load(write_dump(tmp_path, input=INPUT, hlo=hlo)))
    assert [tensor.name for tensor in result.inputs] == ["arg0", "arg1"]


def test_one_of_several_modules(tmp_path: Path) -> None:
    write_dump(tmp_path, "module_0000.jit_f")
    write_dump(tmp_path, "module_0001.jit_g", mlir=INPUT.replace("@jit_f", "@jit_g"))
    for module in (
        pyshardy.load(f"{tmp_path}::jit_g"),
        pyshardy.load(f"{tmp_path}::module_0001.jit_g"),
        pyshardy.load(tmp_path, module="jit_g"),
    ):
        assert "@jit_g" in module.text()
    assert list(dumped_modules(tmp_path)) == ["module_0000.jit_f", "module_0001.jit_g"]


@pytest.mark.parametrize(
    "name", [None, "jit_f", "module_0000.jit_f", "jit_f.cl_1014260217", "module_0000.jit_f.cl_1014260217"]
)
def test_a_dump_of_libtpu_is_one_module(name: str | None, tmp_path: Path) -> None:
    """It appends its version to the names of some files, and not to others."""
    write_dump(tmp_path, "module_0000.jit_f", input=INPUT, decided=DECIDED)
    write_dump(tmp_path, "module_0000.jit_f.cl_1014260217", hlo=NAMED, mlir=INPUT)
    assert list(dumped_modules(tmp_path)) == ["module_0000.jit_f"]
    result = pyshardy.propagate(pyshardy.load(tmp_path, module=name))
    assert [tensor.name for tensor in result.inputs] == ["x", "params['w']"]
    assert not compare(result.module, dump_shardings(tmp_path, name)).differences


def test_dumps_of_two_versions_of_libtpu_are_two_modules(tmp_path: Path) -> None:
    write_dump(tmp_path, "module_0000.jit_f.cl_1", hlo=NAMED)
    write_dump(tmp_path, "module_0000.jit_f.cl_2", hlo=NAMED)
    assert list(dumped_modules(tmp_path)) == ["module_0000.jit_f.cl_1", "module_0000.jit_f.cl_2"]
    with pytest.raises(UsageError, match=r"got several modules: module_0000\.jit_f\.cl_1, module_0000\.jit_f\.cl_2"):
        pyshardy.load(tmp_path)


def test_names_that_xla_made_up_are_no_names(tmp_path: Path) -> None:
    hlo = (
        re.sub(r', metadata=\{op_name="(x|params)[^}]*\}', "", NAMED)
        .replace("x.1", "Arg_0.47")
        .replace("w.1", "Arg_1.5")
    )
    assert "Arg_0.47" in hlo and 'op_name="x"' not in hlo
    for content, expected in ((hlo, ["arg0", "arg1"]), (NAMED, ["x", "params['w']"])):
        result = pyshardy.propagate(pyshardy.load(content))
        assert [tensor.name for tensor in result.inputs] == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (None, "got several modules: module_0000.jit_f, module_0001.jit_f, needed the name of one"),
        ("jit_f", "got several modules 'jit_f', needed one of module_0000.jit_f, module_0001.jit_f"),
        ("jit_g", "got no module 'jit_g', needed one of module_0000.jit_f, module_0001.jit_f"),
    ],
)
def test_a_module_that_is_not_one(name: str | None, message: str, tmp_path: Path) -> None:
    write_dump(tmp_path, "module_0000.jit_f")
    write_dump(tmp_path, "module_0001.jit_f")
    with pytest.raises(UsageError) as caught:
        pyshardy.load(tmp_path, module=name)
    assert f"reading {tmp_path}: {message}" in str(caught.value)


def test_a_directory_that_is_no_dump(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="got a directory without a module, needed a dump of XLA"):
        pyshardy.load(tmp_path)


def test_a_module_of_what_is_no_directory(tmp_path: Path) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(INPUT)
    with pytest.raises(UsageError, match=r"reading module jit_f of .*f\.mlir: got no directory"):
        pyshardy.load(path, module="jit_f")
    with pytest.raises(UsageError, match="got module='jit_f' for a str, needed a module name only for a directory"):
        pyshardy.load(INPUT, module="jit_f")


def test_splitting_a_source(tmp_path: Path) -> None:
    assert split_source("a/b") == (Path("a/b"), None)
    assert split_source("a::b::c") == (Path("a::b"), "c")
    assert split_source("::b") == (Path("::b"), None)
    assert is_dump(tmp_path)
    assert is_dump(f"{tmp_path}::x")
    assert not is_dump("")
    assert not is_dump("-")
    assert not is_dump(tmp_path / "missing")


def test_names_of_parameters() -> None:
    assert argument_names(GSPMD) == ["x", "params['w']"]
    assert argument_names(GSPMD.replace("ENTRY", "")) == []
    assert argument_names(GSPMD.replace('op_name="x"', 'other="x"')) == [None, "params['w']"]
