from __future__ import annotations

import pytest

from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.after_pass import ABC, after, on, refusal

COLLECTIVES = "canonicalize{enable-patterns=sdy-collective top-down=false}"
RESHARDS = "canonicalize{enable-patterns=sdy-reshard top-down=false}"
T = "tensor<8x8x8x8x8xf32>"
EMPTY = "<@m, [{}, {}, {}, {}, {}]>"


def sharding(**dims: str) -> str:
    """A sharding of rank 5 from dimension numbers: `sharding(_0="a b")`."""
    axes = [dims.get(f"_{index}", "").split() for index in range(5)]
    rest = "".join(f', {name}={{"{value}"}}' for name, value in dims.items() if not name.startswith("_"))
    return "<@m, [" + ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in axes) + f"]{rest}>"


def main(given: str, *body: str, returned: str = "%0") -> str:
    """A function of tensors of rank 5; the ops get their types appended."""
    lines = "\n  ".join([*(f"{line} : {T}" for line in body), f"return {returned}"])
    names = returned.split(", ")
    lines += f" : {', '.join([T] * len(names))}"
    results = f"({', '.join([T] * len(names))})"
    return (
        f"{ABC}func.func @main(%x: {T} {{sdy.sharding = #sdy.sharding{given}}}, %y: {T}) -> {results} {{\n  {lines}\n}}"
    )


# The driver's own work


@pytest.mark.parametrize("pipeline", [COLLECTIVES, RESHARDS, "canonicalize{enable-patterns=other}"])
def test_dead_ops_go_and_others_stay(pipeline: str) -> None:
    text = main(
        EMPTY,
        "%1 = stablehlo.abs %x",
        "%2 = stablehlo.negate %1",
        f"%3 = sdy.reshard %x {sharding(_0='a')}",
        '%4 = sdy.all_slice [{"a"}, {}, {}, {}, {}] %x out_sharding=' + sharding(_0="a"),
        "%0 = stablehlo.add %x, %y",
    )
    assert after(text, pipeline) == [
        '%0 = sdy.all_slice [{"a"}, {}, {}, {}, {}] %arg0 out_sharding=<@m, [{"a"}, {}, {}, {}, {}]>',
        "%1 = stablehlo.add %arg0, %arg1",
        "return %1",
    ]


def test_equal_constants_become_one_at_the_start_whatever_their_shardings() -> None:
    text = f"""{ABC}
        func.func @main(%x: tensor<f32>, %i: tensor<i32>) -> tensor<f32> {{
          %0 = stablehlo.add %x, %x : tensor<f32>
          %1 = stablehlo.constant {on("[]")} dense<1.0> : tensor<f32>
          %2 = stablehlo.constant dense<2.0> : tensor<f32>
          %3 = "stablehlo.case"(%i) ({{
            %4 = stablehlo.constant dense<1.0> : tensor<f32>
            %5 = stablehlo.constant dense<3.0> : tensor<f32>
            %6 = stablehlo.add %4, %5 : tensor<f32>
            stablehlo.return %6 : tensor<f32>
          }}) : (tensor<i32>) -> tensor<f32>
          %7 = stablehlo.add %1, %2 : tensor<f32>
          %8 = stablehlo.add %3, %7 : tensor<f32>
          %9 = stablehlo.add %8, %0 : tensor<f32>
          return %9 : tensor<f32>
        }}"""
    assert after(text, COLLECTIVES)[:6] == [
        "%cst = stablehlo.constant dense<3.000000e+00>",
        "%cst_0 = stablehlo.constant dense<2.000000e+00>",
        "%cst_1 = stablehlo.constant {sharding<[<@m, []>]>} dense<1.000000e+00>",
        "%0 = stablehlo.add %arg0, %arg0",
        '%1 = "stablehlo.case"(%arg1) ({',
        "%5 = stablehlo.add %cst_1, %cst",
    ]


def test_manual_computations_keep_their_constants() -> None:
    text = f"""{ABC}
        func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = sdy.manual_computation(%x) in_shardings=[<@m, [{{}}]>] out_shardings=[<@m, [{{}}]>] manual_axes={{}}
              (%p: tensor<8xf32>) {{
            %1 = stablehlo.add %p, %p : tensor<8xf32>
            %2 = stablehlo.constant dense<1.0> : tensor<8xf32>
            %3 = stablehlo.add %1, %2 : tensor<8xf32>
            sdy.return %3 : tensor<8xf32>
          }} : (tensor<8xf32>) -> tensor<8xf32>
          %4 = stablehlo.constant dense<1.0> : tensor<8xf32>
          %5 = stablehlo.add %0, %4 : tensor<8xf32>
          return %5 : tensor<8xf32>
        }}"""
    assert [line.partition(" = ")[2] for line in after(text, COLLECTIVES) if "constant" in line] == [
        "stablehlo.constant dense<1.000000e+00>"
    ] * 2


def test_constants_that_lead_already_stay_in_order() -> None:
    text = main(
        EMPTY, "%1 = stablehlo.constant dense<1.0>", "%2 = stablehlo.constant dense<2.0>", "%0 = stablehlo.add %1, %2"
    )
    assert [line[-14:] for line in after(text, COLLECTIVES)[:2]] == ["<1.000000e+00>", "<2.000000e+00>"]


# Reshards


def test_chain_of_reshards_becomes_one() -> None:
    text = main(
        EMPTY,
        f"%1 = sdy.reshard %x {sharding(_0='a')}",
        f"%2 = sdy.reshard %1 {sharding(_1='a')}",
        f"%0 = sdy.reshard %2 {sharding(_2='a')}",
    )
    assert after(text, RESHARDS) == [f"%0 = sdy.reshard %arg0 {sharding(_2='a')}", "return %0"]
    assert len(after(text, COLLECTIVES)) == 4


def test_reshard_in_between_that_is_used_stays() -> None:
    text = main(
        EMPTY,
        f"%1 = sdy.reshard %x {sharding(_0='a')}",
        f"%0 = sdy.reshard %1 {sharding(_1='a')}",
        returned="%0, %1",
    )
    assert len(after(text, RESHARDS)) == 3


# Collectives

SLICED, GATHERED = sharding(_0="a"), EMPTY
AXES = '[{"a"}, {}, {}, {}, {}]'
NO_AXES = "[{}, {}, {}, {}, {}]"


@pytest.mark.parametrize(
    ("given", "body", "expected"),
    [
        (EMPTY, [f"%0 = sdy.all_gather {NO_AXES} %x out_sharding={EMPTY}"], ["return %arg0"]),
        (EMPTY, [f"%0 = sdy.all_slice {NO_AXES} %x out_sharding={EMPTY}"], ["return %arg0"]),
        (EMPTY, [f"%0 = sdy.reduce_scatter {NO_AXES} %x out_sharding={EMPTY}"], ["return %arg0"]),
        (EMPTY, [f"%0 = sdy.all_reduce {{}} %x out_sharding={EMPTY}"], ["return %arg0"]),
        (SLICED, [f"%0 = sdy.collective_permute %x out_sharding={SLICED}"], ["return %arg0"]),
        (
            SLICED,
            [
                f"%1 = sdy.all_gather {AXES} %x out_sharding={GATHERED}",
                f"%0 = sdy.all_slice {AXES} %1 out_sharding={SLICED}",
            ],
            [f"%0 = sdy.all_gather {AXES} %arg0 out_sharding={GATHERED}", "return %arg0"],
        ),
        (
            EMPTY,
            [
                f'%1 = sdy.replicated_to_unreduced {{"a"}} %x out_sharding={sharding(unreduced="a")}',
                f'%0 = sdy.all_reduce {{"a"}} %1 out_sharding={EMPTY}',
            ],
            [f'%0 = sdy.replicated_to_unreduced {{"a"}} %arg0 out_sharding={sharding(unreduced="a")}', "return %arg0"],
        ),
        (
            SLICED,
            [
                f"%1 = sdy.sharded_to_unreduced {AXES} %x out_sharding={sharding(unreduced='a')}",
                f'%0 = sdy.all_reduce {{"a"}} %1 out_sharding={EMPTY}',
            ],
            [
                f"%0 = sdy.sharded_to_unreduced {AXES} %arg0 out_sharding={sharding(unreduced='a')}",
                f"%1 = sdy.all_gather {AXES} %arg0 out_sharding={EMPTY}",
                "return %1",
            ],
        ),
        (
            SLICED,
            [f'%1 = sdy.all_to_all [{{"a"}}: 0->1] %x out_sharding={sharding(_1="a")}', "%0 = stablehlo.abs %y"],
            ["%0 = stablehlo.abs %arg1", "return %0"],
        ),
        (
            EMPTY,
            [
                f'%1 = sdy.all_reduce {{"a"}} %x out_sharding={EMPTY}',
                f"%0 = sdy.all_slice {AXES} %1 out_sharding={SLICED}",
            ],
            [f"%0 = sdy.reduce_scatter {AXES} %arg0 out_sharding={SLICED}", "return %0"],
        ),
        (
            EMPTY,
            [
                f'%1 = sdy.all_reduce {{"a"}} %x out_sharding={EMPTY}',
                f'%0 = sdy.all_slice [{{"a", "b"}}, {{}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_0="a b")}',
            ],
            [
                f"%0 = sdy.reduce_scatter {AXES} %arg0 out_sharding={SLICED}",
                f'%1 = sdy.all_slice [{{"b"}}, {{}}, {{}}, {{}}, {{}}] %0 out_sharding={sharding(_0="a b")}',
                "return %1",
            ],
        ),
    ],
    ids=[
        "gather nothing", "slice nothing", "scatter nothing", "reduce nothing", "permute nothing", "slice of gather",
        "reduce of replicated", "reduce of sharded", "unused all-to-all", "reduce and slice", "reduce and slice more",
    ],
)  # fmt: skip
def test_rewritten(given: str, body: list[str], expected: list[str]) -> None:
    text = main(given, *body)
    assert after(text, COLLECTIVES) == expected
    assert after(text, "canonicalize{enable-patterns=sdy-collective}") == expected


@pytest.mark.parametrize(
    "body",
    [
        [f"%1 = sdy.all_gather {AXES} %x out_sharding={GATHERED}",
         f'%0 = sdy.all_slice [{{}}, {{"a"}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_1="a")}'],
        [f'%1 = sdy.all_reduce {{"b"}} %x out_sharding={SLICED}',
         f'%0 = sdy.all_slice [{{"c", "b"}}, {{}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_0="a c b")}'],
        [f'%1 = sdy.all_reduce {{"b"}} %x out_sharding={SLICED}',
         f'%2 = sdy.all_slice [{{"b"}}, {{}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_0="a b")}',
         f'%3 = sdy.all_slice [{{}}, {{"b"}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_0="a", _1="b")}',
         "%0 = stablehlo.add %2, %3"],
        [f'%1 = sdy.all_reduce {{"b"}} %x out_sharding={SLICED}',
         f'%2 = sdy.all_slice [{{"b"}}, {{}}, {{}}, {{}}, {{}}] %1 out_sharding={sharding(_0="a b")}',
         "%0 = stablehlo.add %2, %1"],
    ],
    ids=["other axes", "another axis first", "other slices", "another use"],
)  # fmt: skip
def test_not_rewritten(body: list[str]) -> None:
    assert len(after(main(SLICED, *body), COLLECTIVES)) == len(body) + 1


def test_slices_of_one_reduction_share_a_reduce_scatter() -> None:
    slice_ = f"sdy.all_slice {AXES} %1 out_sharding={SLICED}"
    text = main(
        EMPTY, f'%1 = sdy.all_reduce {{"a"}} %x out_sharding={EMPTY}', f"%2 = {slice_}", f"%3 = {slice_}",
        "%0 = stablehlo.add %2, %3",
    )  # fmt: skip
    assert after(text, COLLECTIVES) == [
        f"%0 = sdy.reduce_scatter {AXES} %arg0 out_sharding={SLICED}", "%1 = stablehlo.add %0, %0", "return %1"
    ]  # fmt: skip


def test_slice_in_a_region_does_not_hide_one_behind_it() -> None:
    text = f"""{ABC}
        func.func @main(%x: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@m, [{{}}]>}}, %i: tensor<i32>)
            -> (tensor<8xf32>, tensor<8xf32>) {{
          %1 = sdy.all_reduce {{"a"}} %x out_sharding=<@m, [{{}}]> : tensor<8xf32>
          %2 = "stablehlo.case"(%i) ({{
            %4 = sdy.all_slice [{{"a"}}] %1 out_sharding=<@m, [{{"a"}}]> : tensor<8xf32>
            stablehlo.return %4 : tensor<8xf32>
          }}) : (tensor<i32>) -> tensor<8xf32>
          %3 = sdy.all_slice [{{"a"}}] %1 out_sharding=<@m, [{{"a"}}]> : tensor<8xf32>
          return %2, %3 : tensor<8xf32>, tensor<8xf32>
        }}"""
    assert not any("reduce_scatter" in line for line in after(text, COLLECTIVES))


CHAIN = main(
    sharding(_0="a", _1="b"),
    f'%1 = sdy.all_to_all [{{"a"}}: 0->2] %x out_sharding={sharding(_1="b", _2="a")}',
    f'%2 = sdy.all_to_all [{{"b"}}: 1->3] %1 out_sharding={sharding(_2="a", _3="b")}',
    f'%0 = sdy.all_to_all [{{"a"}}: 2->4] %2 out_sharding={sharding(_3="b", _4="a")}',
)


def test_chain_of_all_to_alls_is_merged_from_the_end() -> None:
    assert after(CHAIN, COLLECTIVES) == [
        f'%0 = sdy.all_to_all [{{"a"}}: 0->2] %arg0 out_sharding={sharding(_1="b", _2="a")}',
        f'%1 = sdy.all_to_all [{{"b"}}: 1->3, {{"a"}}: 2->4] %0 out_sharding={sharding(_3="b", _4="a")}',
        "return %1",
    ]


def test_chain_of_all_to_alls_is_merged_from_the_start_top_down() -> None:
    assert after(CHAIN, "canonicalize{enable-patterns=sdy-collective}") == [
        f'%0 = sdy.all_to_all [{{"a"}}: 0->2, {{"b"}}: 1->3] %arg0 out_sharding={sharding(_2="a", _3="b")}',
        f'%1 = sdy.all_to_all [{{"a"}}: 2->4] %0 out_sharding={sharding(_3="b", _4="a")}',
        "return %1",
    ]


def test_several_labels() -> None:
    text = main(
        EMPTY,
        f"%1 = sdy.reshard %x {SLICED}",
        f"%2 = sdy.reshard %1 {SLICED}",
        f"%0 = sdy.all_gather {NO_AXES} %2 out_sharding={SLICED}",
    )
    assert after(text, "canonicalize{enable-patterns=sdy-reshard,sdy-collective}") == [
        f"%0 = sdy.reshard %arg0 {SLICED}", "return %0"
    ]  # fmt: skip


def test_merged_reshards_come_from_both_places() -> None:
    lines = (f"%1 = sdy.reshard %x {SLICED}", f"%0 = sdy.reshard %1 {sharding(_1='a')}")
    text = run_pipeline(Module.parse(main(EMPTY, *lines)), RESHARDS).text(debug_info=True)
    assert "fused[" in text


def test_refuses_a_scatter_that_would_use_an_axis_twice() -> None:
    constants = [
        f"%{index} = stablehlo.constant {on(whole)} dense<1.0>" for index, whole in ((1, sharding(_1="a")), (2, EMPTY))
    ]
    text = main(
        EMPTY,
        *constants,
        f'%3 = sdy.all_reduce {{"a"}} %2 out_sharding={EMPTY}',
        f"%4 = sdy.all_slice {AXES} %3 out_sharding={SLICED}",
        "%0 = stablehlo.add %1, %4",
    )
    assert refusal(text, COLLECTIVES) == (
        "'sdy.all_slice' op sharding a tensor: got axis \"a\" twice, needed every axis at most once"
    )


@pytest.mark.parametrize("text", ["module {}", "func.func private @f(tensor<8xf32>) -> tensor<8xf32>"])
def test_without_a_label_it_takes_modules_with_nothing_to_do(text: str) -> None:
    module = Module.parse(text)
    assert run_pipeline(module, "canonicalize").text() == module.text()
