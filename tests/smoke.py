"""An installation works: `python tests/smoke.py compiled` or `interpreted`, with the Python it was installed for.

`make wheel` runs it, in environments where nothing else is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
ROOT = Path(__file__).parent.parent
PROGRAM = """sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<8x16xf32> {
  %0 = stablehlo.sine %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}"""


def check(core: str) -> None:
    """Use the package as it was installed."""
    sys.path = [path for path in sys.path if Path(path).resolve() not in (ROOT, ROOT / "tests")]
    import pyshardy
    import pyshardy.ir.op

    assert ROOT / "pyshardy" not in Path(pyshardy.__file__).resolve().parents, "not the installed one"
    is_compiled = not pyshardy.ir.op.__file__.endswith(".py")
    assert is_compiled == (core == "compiled"), pyshardy.ir.op.__file__
    found = pyshardy.propagate(pyshardy.load(PROGRAM))
    assert str(found.outputs[0].sharding) == '<@mesh, [{"data"}, {}]>'
    assert "tensor<2x16xf32>" in pyshardy.partition(found).module.text()
    scripts = Path(sys.executable).parent
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "small.mlir")
        path.write_text(PROGRAM)
        for command in (
            ["pyshardy", "show", str(path)],
            ["pyshardy-opt", str(path)],
            ["pyshardy", "partition", "example"],
            ["pyshardy", "report", str(path)],
        ):
            subprocess.run([str(scripts / command[0]), *command[1:]], check=True, capture_output=True, cwd=folder)
    check_imports(Path(pyshardy.__file__).parent)
    print(f"pyshardy {version('pyshardy')}, {core}, works with Python {sys.version.split()[0]}")


def check_imports(package: Path) -> None:
    """Every compiled module can be the first of all that is imported: some need each other's types."""
    for path in sorted([*package.rglob("*.so"), *package.rglob("*.pyd")]):
        parts = path.relative_to(package.parent).parent.parts
        name = ".".join((*parts, path.name.partition(".")[0]))
        subprocess.run([sys.executable, "-c", f"import {name}"], check=True, cwd=Path(tempfile.gettempdir()))


if __name__ == "__main__":
    check(sys.argv[1])
