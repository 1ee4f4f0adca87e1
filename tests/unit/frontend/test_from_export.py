from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from jax import export
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import pyshardy
from pyshardy.errors import InvalidModuleError
from pyshardy.frontend.from_export import artifact_in


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))


def exported() -> export.Exported:
    sharding = NamedSharding(mesh(), PartitionSpec("data"))
    shardings = ({"x": sharding, "w": None}, None)
    jitted = jax.jit(lambda p, unused: {"y": jax.numpy.tanh(p["x"]) @ p["w"]}, in_shardings=shardings)
    args = {"x": jax.ShapeDtypeStruct((8, 16), "float32"), "w": jax.ShapeDtypeStruct((16, 4), "float32")}
    return export.export(jitted)(args, jax.ShapeDtypeStruct((3,), "float32"))


def container(artifact: bytes) -> bytes:
    """A portable artifact as it stands in what `Exported.serialize()` gives, which needs a package that is not here."""
    return b"\x10\x00\x00\x00\xff\xfe" + len(artifact).to_bytes(4, "little") + artifact + b"\xff\x00rest"


def test_an_exported_function_with_its_signature() -> None:
    result = pyshardy.propagate(pyshardy.load(exported()))
    assert [tensor.name for tensor in result.inputs] == ["p['w']", "p['x']"]
    assert result.in_shardings == (
        {
            "w": NamedSharding(mesh(), PartitionSpec()),
            "x": NamedSharding(mesh(), PartitionSpec("data", None)),
        },
        None,
    )
    assert result.out_shardings == {"y": NamedSharding(mesh(), PartitionSpec("data", None))}


def test_the_artifact_and_the_serialized_form(tmp_path: Path) -> None:
    artifact = exported().mlir_module_serialized
    path = tmp_path / "f.bin"
    path.write_bytes(container(artifact))
    texts = {pyshardy.load(one).text() for one in (artifact, bytearray(container(artifact)), path)}
    (text,) = texts
    assert "stablehlo.dot_general" in text
    assert "vhlo" not in text
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>' in text


def test_bytes_without_an_artifact() -> None:
    assert artifact_in(b"") is None
    assert artifact_in(b"\x00\x00\x00\x00ML\xefR") is None
    assert artifact_in(container(b"ML\xefR\rother bytecode, of another producer")) is None
    artifact = exported().mlir_module_serialized
    assert artifact_in(container(artifact)[:-20]) is None
    assert artifact_in(b"ML\xefR" + container(artifact)) == artifact


def test_an_artifact_that_is_broken(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidModuleError, match="needed a StableHLO artifact of no later version") as caught:
        pyshardy.load(exported().mlir_module_serialized[:200])
    assert "failed to deserialize portable artifact" in str(caught.value)
    assert capfd.readouterr() == ("", "")  # MLIR prints nothing beside
