"""The types of the compiled core fit the modules they stand beside, and an installation without a compiler works."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TYPES = sorted((ROOT / "pyshardy").rglob("*.pxd"))

_CLASS = re.compile(r"^cdef class (\w+)")
_ATTRIBUTE = re.compile(r"^    cdef public [\w.\[:\]]+ (\w+)$")
_FUNCTION = re.compile(r"^( *)c(?:p)?def (?:(?:bint|dict|list|set|tuple|Py_ssize_t|[A-Z]\w*) )?(\w+)\(([^)]*)\)")
_LOCALS = re.compile(r"^ *@cython\.locals\((.*)\)$")


def problems(types: str, code: str) -> list[str]:
    """What a `.pxd` file tells of a module that is not so: Cython itself ignores types of variables that are not there."""
    tree = ast.parse(code)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found, variables = [], ""
    holder: ast.ClassDef | ast.Module = tree
    declared: dict[str, set[str]] = {}
    for line in types.splitlines():
        if match := _LOCALS.match(line):
            variables = match[1]
        elif match := _CLASS.match(line):
            if match[1] not in classes:
                found.append(f"no class {match[1]}")
            holder = classes.get(match[1], tree)
            attributes = declared[match[1]] = set()
        elif match := _ATTRIBUTE.match(line):
            attributes.add(match[1])
        elif match := _FUNCTION.match(line):
            function = _function(holder if match[1] else tree, match[2])
            if function is None:
                found.append(f"no function {match[2]}")
            else:
                names = {variable.split("=")[0].strip() for variable in variables.split(",") if variable}
                found += [f"no variable {name} in {match[2]}" for name in sorted(names - _names(function))]
                given = [argument.split()[-1].removesuffix("=*") for argument in match[3].split(", ") if argument]
                if given != [argument.arg for argument in function.args.args]:
                    found.append(f"other arguments of {match[2]}")
            variables = ""
    for name, attributes in declared.items():
        if name in classes:
            found += [
                f"no attribute {other} in one of them" for other in sorted(attributes ^ _attributes(classes[name]))
            ]
    return found


def _function(holder: ast.ClassDef | ast.Module, name: str) -> ast.FunctionDef | None:
    return next((node for node in holder.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _names(function: ast.FunctionDef) -> set[str]:
    """The variables that a function sets."""
    return {
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {argument.arg for argument in function.args.args}


def _attributes(holder: ast.ClassDef) -> set[str]:
    """The attributes that a class lists as slots, or that its methods set on themselves."""
    found = set()
    for node in ast.walk(holder):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            found |= set(ast.literal_eval(node.value))
    return found - {node.name for node in holder.body if isinstance(node, ast.FunctionDef)}  # properties


@pytest.mark.parametrize("path", TYPES, ids=lambda path: path.stem)
def test_the_types_fit_the_module(path: Path) -> None:
    assert problems(path.read_text(), path.with_suffix(".py").read_text()) == []


def test_types_that_do_not_fit_are_noticed() -> None:
    assert len(TYPES) > 4
    code = "class A:\n    def __init__(self):\n        self.x = 1\n\n    def f(self, a):\n        b = a\n"
    good = "cdef class A:\n    cdef public list x\n\n    @cython.locals(b=int)\n    cpdef list f(self, int a)\n"
    assert problems(good, code) == []
    assert problems(good.replace("x", "y"), code) == [f"no attribute {name} in one of them" for name in "xy"]
    assert problems(good.replace("b=", "c="), code) == ["no variable c in f"]
    assert problems(good.replace("int a", "int d"), code) == ["other arguments of f"]
    assert problems(good.replace(" f(", " g("), code) == ["no function g"]
    assert "no class B" in problems(good.replace("A", "B"), code)


@pytest.fixture
def small_package(tmp_path: Path) -> Path:
    """A package with one module to compile, and our `setup.py`."""
    (tmp_path / "setup.py").write_text((ROOT / "setup.py").read_text())
    (tmp_path / "pyshardy").mkdir()
    (tmp_path / "pyshardy/__init__.py").touch()
    (tmp_path / "pyshardy/small.py").write_text("def twice(x):\n    return 2 * x\n")
    (tmp_path / "pyshardy/small.pxd").write_text("cpdef twice(x)\n")
    return tmp_path


def test_a_source_distribution_can_be_compiled(small_package: Path) -> None:
    (small_package / "MANIFEST.in").write_text((ROOT / "MANIFEST.in").read_text())
    command = [sys.executable, "setup.py", "-q", "sdist", "--formats=tar"]
    subprocess.run(
        command, cwd=small_package, env=os.environ | {"PYSHARDY_COMPILE": "0"}, capture_output=True, check=True
    )
    (archive,) = (small_package / "dist").iterdir()
    with tarfile.open(archive) as contents:
        names = {Path(name).name for name in contents.getnames()}
    assert {"setup.py", "small.pxd"} <= names


def build(folder: Path, choice: str, compiler: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYSHARDY_COMPILE": choice}
    if compiler is not None:
        environment |= {"CC": compiler}
    command = [sys.executable, "setup.py", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def compiled(folder: Path) -> list[Path]:
    return [path for path in (folder / "pyshardy").iterdir() if path.suffix in (".so", ".pyd")]


def test_the_core_is_left_out_without_a_compiler(small_package: Path) -> None:
    result = build(small_package, "", "no-such-compiler")
    assert result.returncode == 0
    assert "installed without its compiled core" in result.stderr
    assert not compiled(small_package)


def test_the_core_is_left_out_if_cython_does_not_take_it(small_package: Path) -> None:
    (small_package / "pyshardy/small.pxd").write_text("cpdef thrice(x)\n")
    result = build(small_package, "")
    assert result.returncode == 0
    assert "installed without its compiled core" in result.stderr
    assert not compiled(small_package)
    assert build(small_package, "1").returncode != 0


def test_a_core_that_was_asked_for_has_to_be_built(small_package: Path) -> None:
    assert build(small_package, "1", "no-such-compiler").returncode != 0


def test_the_core_may_be_left_out(small_package: Path) -> None:
    assert build(small_package, "0").returncode == 0
    assert not compiled(small_package)


def hidden_constants(types: str, code: str) -> set[str]:
    """The constants of a module that its `.pxd` file makes variables of C, which no other module can import."""
    names = {name for line in re.findall(r"^cdef \w+ ((?:\w+, )*\w+)$", types, re.M) for name in line.split(", ")}
    assigned = {
        name for node in ast.parse(code).body if isinstance(node, (ast.Assign, ast.AnnAssign)) for name in _set_by(node)
    }
    return names & assigned


def _set_by(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store)}


def test_no_module_imports_a_variable_of_c() -> None:
    hidden = {
        (".".join(path.relative_to(ROOT).with_suffix("").parts), name)
        for path in TYPES
        for name in hidden_constants(path.read_text(), path.with_suffix(".py").read_text())
    }
    assert hidden
    imported = {
        (node.module, alias.name)
        for path in (ROOT / "pyshardy").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert hidden & imported == set()


def test_a_variable_of_c_is_noticed() -> None:
    types = "cdef int LIMIT, OTHER\ncdef str NAME\n\n\ncpdef f(x)\n"
    assert hidden_constants(types, "from m import OTHER\nLIMIT, FEW = 1, 2\nNAME: str = 'x'\n") == {"LIMIT", "NAME"}


def wrong_origins(types: str, code: str) -> list[str]:
    """The classes that a module imports from elsewhere than its `.pxd` file, which Cython refuses."""
    origins = {
        name: module
        for module, names in re.findall(r"^from ([\w.]+) cimport (.+)$", types, re.M)
        for name in names.split(", ")
    }
    imports = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.ImportFrom)]
    pairs = [(node.module, alias.name) for node in imports for alias in node.names]
    return [f"{name} from {module}" for module, name in pairs if origins.get(name, module) != module]


@pytest.mark.parametrize("path", TYPES, ids=lambda path: path.stem)
def test_the_module_imports_what_its_types_do(path: Path) -> None:
    assert wrong_origins(path.read_text(), path.with_suffix(".py").read_text()) == []


def test_a_class_from_elsewhere_is_noticed() -> None:
    types, code = "from pyshardy.ir.blocks cimport Block, Value\n", "from pyshardy.ir.nodes import Op, Value\n"
    assert wrong_origins(types, code) == ["Value from pyshardy.ir.nodes"]
    assert wrong_origins(types, code.replace("nodes", "blocks")) == []
