from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.pipeline import run_pipeline
from support.reference import run_reference

LIFT = "sdy-lift-inlined-meshes"
T = "tensor<8x8xf32>"


def groups(mesh: str, axis: str) -> str:
    """Replica groups as axes of a mesh."""
    return f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = {axis}>]>"


def inlined(*axes: tuple[str, int], devices: list[int] | None = None) -> str:
    """A mesh inside replica groups."""
    found = ", ".join(f"#stablehlo.mesh_axis<name = {name}, size = {size}>" for name, size in axes)
    ids = "" if devices is None else f", device_ids = dense<{devices}> : tensor<{len(devices)}xi64>"
    return f"#stablehlo.mesh<axes = [{found}]{ids}>"


def gathering(*replica_groups: str, meshes: str = "") -> str:
    """A module with one all-gather per list of replica groups."""
    ops = "\n".join(
        f'  %{number} = "stablehlo.all_gather"(%a) {{all_gather_dim = 1 : i64, replica_groups = {text}}} '
        f": ({T}) -> tensor<8x16xf32>"
        for number, text in enumerate(replica_groups)
    )
    return f"{meshes}\nfunc.func @main(%a: {T}) {{\n{ops}\n  return\n}}"


def sharded(*shardings: str, meshes: str = "") -> str:
    """A module whose function has arguments with these shardings."""
    args = ", ".join(
        f"%{number}: {T} {{sdy.sharding = #sdy.sharding<{text}>}}" for number, text in enumerate(shardings)
    )
    return f"{meshes}\nfunc.func @main({args}) {{ return }}"


MODULES = {
    "names in quotes": sharded(
        '@"a b", [{"x y"}, {}]', '@"\\22", [{"x y"}, {}]',
        meshes='sdy.mesh @"a b" = <["x y"=2]> sdy.mesh @"\\22" = <["x y"=2]>',
    ),
    "names with brackets": sharded('mesh<["a]>"=2, "\\22, <"=2]>, [{"a]>"}, {"\\22, <"}]'),
    "groups on a mesh with a name in quotes": gathering(
        groups('@"b c"', '"x y"'), meshes='sdy.mesh @a = <["x y"=2]> sdy.mesh @"b c" = <["x y"=2]>'
    ),
    "groups along axes with odd names": gathering(groups(inlined(('"a]>"', 2), ('"\\22, <"', 4)), '"\\22, <"')),
    "an axis named as a mesh": gathering(
        groups("@b", '"mesh = @b"'), meshes='sdy.mesh @a = <["mesh = @b"=2]> sdy.mesh @b = <["mesh = @b"=2]>'
    ),
    "the same mesh in groups and in a sharding": gathering(
        groups(inlined(('"x"', 2)), '"x"'), groups(inlined(('"x"', 2)), '"x"'), groups(inlined(('"y"', 2)), '"y"')
    ).replace(f"%a: {T}", f"%a: {T} {{sdy.sharding = #sdy.sharding<mesh<[\"x\"=2]>, [{{}}, {{}}]>}}"),
    "devices": sharded(
        *(f"mesh<[], device_ids=[{device}]>, []" for device in (3, 0, 3)),
        'mesh<["x"=2], device_ids=[1, 0]>, [{}, {}]',
        'mesh<["x"=2], device_ids=[0, 1]>, [{}, {}]',
        'mesh<["x"=2]>, [{}, {}]',
    ),
    "taken names": sharded(
        'mesh<["y"=2]>, [{}, {}]', "mesh<[]>, [{}, {}]", "mesh<[], device_ids=[0]>, []",
        meshes='sdy.mesh @mesh = <["x"=2]> func.func private @empty_mesh() func.func private @maximal_mesh_0()',
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_meshes_are_lifted_as_by_the_reference(text: str) -> None:
    ours = run_pipeline(Module.parse(text), LIFT)
    assert ours.text(generic=True).strip() == run_reference(text, LIFT).strip()
    ours.verify()


@pytest.mark.parametrize("text", MODULES.values(), ids=MODULES)
def test_what_is_lifted_stays(text: str) -> None:
    # the second run merges the meshes of replica groups, which the first gives names of their own
    twice = run_pipeline(run_pipeline(Module.parse(text), LIFT), LIFT)
    assert run_pipeline(twice, LIFT).text() == twice.text()
    assert len(set(module_meshes(twice.root).values())) == len(module_meshes(twice.root))


def test_every_distinct_mesh_has_one_name() -> None:
    meshes = module_meshes(run_pipeline(Module.parse(MODULES["devices"]), LIFT).root)
    assert meshes == {
        "maximal_mesh_3": Mesh([], [3]),
        "maximal_mesh_0": Mesh([], [0]),
        "mesh": Mesh([("x", 2)], [1, 0]),
        "mesh_0": Mesh([("x", 2)]),
    }


@pytest.mark.parametrize("size", [4, 1000])
def test_groups_keep_the_order_of_the_devices(size: int) -> None:
    # MLIR prints a long list of numbers as hexadecimal digits
    devices = [*range(1, size), 0]
    text = gathering(groups(inlined(('"x"', 2), ('"y"', size // 2), devices=devices), '"x"'))
    ours = run_pipeline(Module.parse(text), LIFT)
    ours.verify()
    assert module_meshes(ours.root) == {"mesh": Mesh([("x", 2), ("y", size // 2)], devices)}
    inlined_again = run_pipeline(ours, "sdy-inline-meshes")
    assert module_meshes(run_pipeline(inlined_again, LIFT).root) == module_meshes(ours.root)


def test_the_reference_drops_the_order_of_the_devices() -> None:
    lifted = run_reference(gathering(groups(inlined(('"x"', 2), devices=[1, 0]), '"x"')), LIFT)
    assert "sdy.mesh" in lifted and "[1, 0]" not in lifted


def test_groups_of_a_mesh_that_lacks_a_device_are_refused() -> None:
    text = gathering(groups(inlined(('"x"', 2), devices=[1, 1]), '"x"'))
    with pytest.raises(ShardyError, match="a permutation of 0 to 1"):
        run_pipeline(Module.parse(text), LIFT)
