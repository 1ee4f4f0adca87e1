"""`pyshardy.doctor` on programs with one mistake each: it is the first finding, and the patch mends it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import ModuleType

import pytest
from checkup.more_programs import MORE_CASES
from checkup.programs import CASES as FIRST_CASES
from checkup.value_programs import VALUE_CASES
from search.patching import apply_patch, imported

import pyshardy
from pyshardy.checkup.cures import LEAST_GAIN, gain
from pyshardy.checkup.kinds.signs import signs, uneven_parts
from pyshardy.costing.chips import find_hardware
from pyshardy.report.diagnosis import Diagnosis, Figures, FindingKind

CASES = {**FIRST_CASES, **MORE_CASES, **VALUE_CASES}
NAMES = sorted(CASES)
SEEDED = {
    "axis lost at a lookup": 2, "one constraint for several values": 1, "micro-batches that split the axis": 1,
    "a kernel whose gradient is a kernel": 1, "a vocabulary that an axis does not divide": 1,
    "sequences that are merged behind time": 1,
}  # fmt: skip
"""Sound programs for which a better layout is known, with the most findings on them."""


def load(source: str, path: Path) -> pyshardy.Module:
    made: ModuleType = imported(path, source.splitlines(keepends=True))
    return pyshardy.load(made.step.lower(*made.arguments))


def step_seconds(module: pyshardy.Module) -> float:
    return pyshardy.cost(module, "h100").step_seconds


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # paths in patches are relative to it
    return tmp_path


def diagnosis(source: str, path: Path) -> Diagnosis:
    return pyshardy.doctor(load(source, path), hardware="h100")


@pytest.mark.parametrize("name", NAMES)
def test_the_mistake_is_the_first_finding(name: str, folder: Path) -> None:
    case, path = CASES[name], folder / f"wrong_{NAMES.index(name)}.py"
    found = diagnosis(case.wrong, path)
    first = found.findings[0]
    assert first.kind.value in case.kinds and case.says in f"{first.what} {first.cure}"
    assert all(len(list(found.tables().lines(width))) <= 24 for width in (80, 200))
    assert bool(first.patch) == case.is_patched
    if case.is_patched:
        mended = "".join(apply_patch(case.wrong.splitlines(keepends=True), first.patch))
        seconds, bytes = (
            [figure(load(text, folder / f"{kind}_{NAMES.index(name)}.py")) for kind, text in pair]
            for figure, pair in (
                (step_seconds, (("mended", mended), ("sound", case.sound))),
                (lambda module: pyshardy.cost(module, "h100").peak_bytes, (("again", mended), ("right", case.sound))),
            )
        )
        assert seconds[0] <= 1.01 * seconds[1] and bytes[0] <= 1.1 * bytes[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_sound_program_has_no_finding_that_saves_little(name: str, folder: Path) -> None:
    found = diagnosis(CASES[name].sound, folder / f"sound_{NAMES.index(name)}.py")
    assert len(found.findings) <= SEEDED.get(name, 0)
    for one in found.findings:
        assert one.after is not None and gain(one.before, one.after, found.limit) >= LEAST_GAIN


def test_a_mistake_that_is_not_mended_is_noticed(folder: Path) -> None:
    """What `test_the_mistake_is_the_first_finding` compares differs where the patch is left out."""
    case = CASES["axis lost at a lookup"]
    wrong, sound = (step_seconds(load(text, folder / f"{name}.py")) for name, text in
                    (("lookup_wrong", case.wrong), ("lookup_sound", case.sound)))  # fmt: skip
    assert wrong > 1.01 * sound


def test_the_same_program_gives_the_same_text(folder: Path) -> None:
    module = load(CASES["axis lost at a lookup"].wrong, folder / "twice.py")
    first, second = (str(pyshardy.doctor(module, hardware="h100")) for _ in range(2))
    assert first == second


def test_later_findings_start_where_earlier_ones_end(folder: Path) -> None:
    found = diagnosis(CASES["axis lost at a lookup"].wrong, folder / "chain.py")
    assert found.findings[0].before == found.now
    for one, other in zip(found.findings, found.findings[1:]):
        assert one.after == other.before


def test_few_tries_find_less(folder: Path) -> None:
    module = load(CASES["axis lost at a lookup"].wrong, folder / "few.py")
    found = pyshardy.doctor(module, hardware="h100", tries=1)
    assert found.tries <= 3 and len(found.findings) <= 1


def test_what_is_tried_is_said(folder: Path) -> None:
    said: list[str] = []
    pyshardy.doctor(load(CASES["nothing donated"].wrong, folder / "said.py"), hardware="h100", progress=said.append)
    assert any(text.startswith("trying 1: jax.jit(..., donate_argnames=('layers',)) at said.py:") for text in said)


def test_what_does_not_fit_is_a_finding() -> None:
    text = """
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<262144x262144xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
        -> tensor<262144x262144xf32> {
      %0 = stablehlo.tanh %a : tensor<262144x262144xf32>
      return %0 : tensor<262144x262144xf32>
    }"""
    found = pyshardy.doctor(text, hardware="h100")
    assert [one.kind.value for one in found.findings] == ["memory"]
    assert found.findings[0].after is None and "does not fit" in found.findings[0].what
    assert "which does not fit in" in str(found) and "not tried" in str(found)


def test_one_device_is_refused() -> None:
    text = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    with pytest.raises(pyshardy.UsageError, match="needed a mesh with several devices"):
        pyshardy.doctor(text)
    with pytest.raises(pyshardy.UsageError, match="got tries=0, needed a number from 1"):
        pyshardy.doctor(text, tries=0)


def test_memory_counts_as_far_as_it_matters() -> None:
    before, half = Figures(1.0, 1 << 30), Figures(1.0, 1 << 29)
    assert gain(before, half, 80e9) < LEAST_GAIN < gain(before, half, 80e9, is_free=True)
    assert gain(before, half, 0.9e9) > gain(before, half, 80e9, is_free=True)


HEADS = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def heads(x, w):
    h = x @ w
    split = h.reshape(8192, 5, 512)
    scores = jax.nn.softmax(split, axis=-1)
    return scores.sum(1)


def array(shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


step = jax.jit(heads)
arguments = array((8192, 1024), P("data")), array((1024, 2560), P(None, "model"))
"""


def test_a_dimension_that_its_axis_does_not_divide_is_a_finding(folder: Path) -> None:
    found = pyshardy.cost(load(HEADS, folder / "heads.py"), "h100")
    now = Figures(found.step_seconds, found.peak_bytes)
    (mesh,) = (mesh for mesh in found.partition.meshes.values() if mesh.axes)
    uneven = [one for _, one in signs(found, now, mesh) if one.kind is FindingKind.UNEVEN]
    assert "`split` of `heads`" in uneven[0].what and "'model' does not divide dimension 1 of 5" in uneven[0].what
    assert "pad the dimension to 8" in uneven[0].cure and uneven[0].after is None


def test_a_dimension_that_its_axis_divides_in_part_is_a_finding(folder: Path) -> None:
    source = (
        HEADS.replace("2560", "1536").replace("5, 512", "6, 256").replace("scores.sum(1)", "scores.reshape(h.shape)")
    )
    found = pyshardy.cost(load(source, folder / "parts.py"), "h100")
    now = Figures(found.step_seconds, found.peak_bytes)
    (mesh,) = (mesh for mesh in found.partition.meshes.values() if mesh.axes)
    ((share, one),) = uneven_parts(found, now, mesh)
    assert one.kind is FindingKind.UNEVEN and one.place is not None and one.place[1] in (10, 12)
    assert one.what.startswith("'model', which has 4 devices, does not divide dimension 1 of 6 at parts.py:1")
    assert "pad the dimension to 8" in one.cure and 0.01 < share < 1 and one.after is None
    even = pyshardy.cost(load(source.replace("6, 256", "8, 192"), folder / "even.py"), "h100")
    assert not list(uneven_parts(even, now, mesh))


def test_a_kernel_without_a_rule_is_a_finding() -> None:
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    text = f"""
    sdy.mesh @mesh = <["x"=8]>
    func.func @main(%a: tensor<8192x4096xbf16> {sharding}) -> (tensor<8192x4096xbf16> {sharding}) {{
      %0 = stablehlo.custom_call @my_kernel(%a) {{backend_config = ""}}
        : (tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
      return %0 : tensor<8192x4096xbf16>
    }}"""
    (one,) = pyshardy.doctor(text, hardware="h100").findings
    assert one.kind is FindingKind.KERNEL and "gets its operands whole" in one.what and "shard_map" in one.cure
    assert one.after is not None and one.after.seconds < one.before.seconds


SHARDED = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def attend(q, k, v):
    weights = jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", q, k))
    return jnp.einsum("bhqk,bhkd->bhqd", weights, v)


def step(x, w):
    q = jnp.einsum("btd,dhk->bhtk", x, w)
    return jax.shard_map(attend, mesh=mesh, in_specs=(SPEC,) * 3, out_specs=SPEC)(q, q, q)


def array(shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))


step = jax.jit(step)
arguments = array((16, 1024, 2048), P("data")), array((2048, 16, 128), P(None, "model"))
"""


def test_a_shard_map_that_leaves_an_axis_out_is_mended_by_its_names(folder: Path) -> None:
    source, path = SHARDED.replace("SPEC", 'P("data")'), folder / "mapped.py"
    first, *_ = diagnosis(source, path).findings
    assert first.kind is FindingKind.KERNEL and 'leave out "model"' in first.what and "mapped.py:15" in first.what
    assert first.cure.startswith("jax.shard_map(..., axis_names={'data'}) at mapped.py:15")
    mended = "".join(apply_patch(source.splitlines(keepends=True), first.patch))
    assert 'out_specs=P("data"), axis_names={"data"})' in mended
    sound = SHARDED.replace("SPEC", 'P("data", "model")')
    assert step_seconds(load(mended, folder / "names.py")) <= 1.01 * step_seconds(load(sound, folder / "right.py"))
    assert all(one.kind is not FindingKind.KERNEL for one in diagnosis(sound, folder / "fine.py").findings)


@pytest.mark.parametrize("axis", ["data", "model"])
def test_a_function_may_ask_for_its_place_along_another_axis(axis: str, folder: Path) -> None:
    """Along the axis that the specs leave out it may not: that is a sign, and nothing is tried."""
    place = f'(1 + jax.lax.axis_index("{axis}").astype(v.dtype))'
    source = SHARDED.replace("SPEC", 'P("data")').replace("weights, v)", f"weights, v) * {place}")
    source = source.replace("out_specs=", "check_vma=False, out_specs=")
    first, *_ = diagnosis(source, folder / f"place_{axis}.py").findings
    assert 'leave out "model"' in first.what
    if axis == "data":
        assert first.after is not None and 'axis_names={"data"}' in first.patch
    else:
        assert first.after is None and "on dimensions whose parts are computed alone" in first.cure


EXPERTS = """\
import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def part(x, w):
    y = jnp.tanh(x @ w) @ w.T
    return JOINED


def step(x, w):
    return jax.shard_map(part, mesh=mesh, in_specs=(P("data"), P(None, "model")), out_specs=P("data"), check_vma=False)(x, w)


def array(shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.bfloat16, sharding=NamedSharding(mesh, spec))


step = jax.jit(step)
arguments = array((8192, 2048), P("data")), array((2048, 8192), P(None, "model"))
"""


@pytest.mark.parametrize(("joined", "count"), [("y", 1), ('jax.lax.psum(y, "model")', 0)])
def test_results_that_leave_an_axis_out_are_the_same_on_its_devices_unless_they_are_summed(
    joined: str, count: int, folder: Path
) -> None:
    """Whatever the specs of the operands name."""
    found = pyshardy.cost(load(EXPERTS.replace("JOINED", joined), folder / f"experts_{count}.py"), "h100")
    now = Figures(found.step_seconds, found.peak_bytes)
    (mesh,) = (mesh for mesh in found.partition.meshes.values() if mesh.axes)
    kernels = [one for _, one in signs(found, now, mesh) if one.kind is FindingKind.KERNEL]
    assert len(kernels) == count and all('leave out "model"' in one.what for one in kernels)


def test_what_does_not_fit_comes_before_cures_that_do_not_mend_it(folder: Path) -> None:
    small = dataclasses.replace(find_hardware("h100"), memory_bytes=1e8)
    source = CASES["nothing donated"].wrong
    found = pyshardy.doctor(load(source, folder / "large.py"), hardware=small).findings
    assert [one.kind.value for one in found][:2] == ["memory", "donation"]
    assert "with all of them it needs" in found[0].what
