from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import ReductionKind, TensorSharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes
from pyshardy.transforms.reshards.operand_shardings import OpOperand, make_all_reduce, make_reshard
from support.after_pass import on, whole
from support.programs_8x8 import MESHES, T
from support.reference import jaxlib_version

needs_kinds = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older dialects know sums alone")
MINE, OTHER = '[{"a"}, {}]', '<@n, [{"a"}, {}]>'


def sharding(text: str | None) -> TensorSharding | None:
    return None if text is None else parse_sharding(whole(text))


class Setting:
    """A function that squares the absolute value of its argument; the use to meet is the first of the square."""

    def __init__(self, given: str | None, *, at_definition: bool = False, of_argument: bool = False) -> None:
        attrs = "" if given is None else f" {on(given)}"
        arg_attrs = "" if given is None else f" {{sdy.sharding = #sdy.sharding{whole(given)}}}"
        value = "%x" if of_argument else "%0"
        self.module = Module.parse(
            f"{MESHES}func.func @main(%x: {T}{arg_attrs}) {{\n  %0 = stablehlo.abs %x{attrs} : {T}\n"
            f"  %1 = stablehlo.multiply {value}, {value} : {T}\n  return\n}}"
        )
        self.root = self.module.copy_root()
        self.op: Op = next(op for op in walk(self.root) if op.name == "stablehlo.multiply")
        self.use = OpOperand(self.op, 0, module_meshes(self.root), at_definition)

    def body(self) -> list[str]:
        """The ops of the function without `func.return`, those of `sdy` with their attributes."""
        (function,) = functions(self.root)
        found = []
        for op in function.region.block:
            attrs = [_show(value) for name, value in sorted(op.attrs.items()) if name != "reduction_op"]
            found.append(" ".join([op.name.partition(".")[2], *(attrs if op.name.startswith("sdy.") else ())]))
        return found[:-1]


def _show(value: object) -> str:
    if isinstance(value, TensorSharding):
        return str(value)
    assert isinstance(value, tuple)
    return "[" + ", ".join(map(_show if value and isinstance(value[0], tuple) else str, value)) + "]"


CASES = {
    "same": (MINE, MINE, []),
    "equivalent": (MINE, '[{"a", ?}p1, {?}]', []),
    "other axes": (MINE, '[{}, {"a"}]', ['reshard <@m, [{}, {"a"}]>']),
    "other mesh": (MINE, OTHER, [f"reshard {OTHER}"]),
    "replicated": (MINE, None, ["reshard <@m, [{}, {}]>"]),
    "no sharding": (None, None, []),
    "no sharding to replicated": (None, "[{}, {}]", []),
    "no sharding to axes": (None, MINE, ['reshard <@m, [{"a"}, {}]>']),
    "reduced": (
        '[{"a"}, {}], unreduced={"b"}',
        MINE,
        ['all_reduce <@m, [{"a"}, {}]> ["b"]'],
    ),
    "reduced in part": (
        '[{"a"}, {}], unreduced={"b", "c"}',
        '[{"a"}, {}], unreduced={"c"}',
        ['all_reduce <@m, [{"a"}, {}], unreduced={"c"}> ["b"]'],
    ),
    "reduced and resharded": (
        '[{"a"}, {}], unreduced={"b"}',
        '[{}, {"b"}]',
        ['all_reduce <@m, [{"a"}, {}]> ["b"]', 'reshard <@m, [{}, {"b"}]>'],
    ),
    "reduced without a target": (
        '[{}, {}], unreduced={"b"}',
        None,
        ['all_reduce <@m, [{}, {}]> ["b"]'],
    ),
    "unreduced from nowhere": (
        MINE,
        '[{"a"}, {}], unreduced={"b"}',
        ['replicated_to_unreduced ["b"] <@m, [{"a"}, {}], unreduced={"b"}>'],
    ),
    "unreduced from a dimension": (
        '[{"a", "b"}, {}]',
        '[{"a"}, {}], unreduced={"b"}',
        ['sharded_to_unreduced [["b"], []] <@m, [{"a"}, {}], unreduced={"b"}>'],
    ),
    "unreduced from a dimension and from nowhere": (
        '[{"a", "b"}, {}]',
        '[{"a"}, {}], unreduced={"b", "c"}',
        [
            'replicated_to_unreduced ["c"] <@m, [{"a", "b"}, {}], unreduced={"c"}>',
            'sharded_to_unreduced [["b"], []] <@m, [{"a"}, {}], unreduced={"b", "c"}>',
        ],
    ),
    "resharded and unreduced": (
        '[{}, {"a"}]',
        '[{"a"}, {}], unreduced={"b"}',
        [
            'reshard <@m, [{"a"}, {}]>',
            'replicated_to_unreduced ["b"] <@m, [{"a"}, {}], unreduced={"b"}>',
        ],
    ),
    "unreduced stays": ('[{"a"}, {}], unreduced={"b"}', '[{"a"}, {}], unreduced={"b"}', []),
}


@pytest.mark.parametrize(("given", "target", "inserted"), CASES.values(), ids=CASES)
def test_a_use_meets_its_target(given: str | None, target: str | None, inserted: list[str]) -> None:
    setting = Setting(given)
    setting.use.meet(sharding(target), is_full=True)
    assert setting.body() == ["abs", *inserted, "multiply"]
    other = setting.op.operands[1].defining_op
    assert other is not None
    assert other.name == "stablehlo.abs"
    chain, value = [], setting.use.value
    while value is not setting.op.operands[1]:
        op = value.defining_op
        assert op is not None
        chain.append(op.name.partition(".")[2])
        value = op.operands[0]
    assert chain[::-1] == [text.partition(" ")[0] for text in inserted]


@pytest.mark.parametrize(
    ("given", "target", "inserted"),
    [
        (MINE, '[{}, {"a"}]', []),
        ('[{"a"}, {}], unreduced={"b"}', '[{}, {"b"}]', ['all_reduce <@m, [{"a"}, {}]> ["b"]']),
    ],
)
def test_without_the_full_version_only_unreduced_axes_matter(given: str, target: str, inserted: list[str]) -> None:
    setting = Setting(given)
    setting.use.meet(sharding(target), is_full=False)
    assert setting.body() == ["abs", *inserted, "multiply"]


@pytest.mark.parametrize(("of_argument", "body"), [(False, ["abs", "R", "multiply"]), (True, ["R", "abs", "multiply"])])
def test_new_ops_may_go_behind_the_definition(of_argument: bool, body: list[str]) -> None:
    setting = Setting(MINE, at_definition=True, of_argument=of_argument)
    Op("sdy.return").insert_before(setting.op)
    setting.use.meet(sharding("[{}, {}]"), is_full=True)
    expected = ["reshard <@m, [{}, {}]>" if text == "R" else text for text in body]
    assert setting.body() == [*expected[:-1], "return", "multiply"]


@pytest.mark.parametrize(
    ("given", "target", "message"),
    [
        (
            '[{}, {}], unreduced={"b"}',
            '[{}, {}], unreduced={"c"}',
            'drops and adds unreduced axes at once, "b" and "c"',
        ),
        (
            MINE,
            '<@n, [{"a"}, {}], unreduced={"b"}>',
            'needs operand 0, which is sharded <@m, [{"a"}, {}]>, as <@n, [{"a"}, {}], unreduced={"b"}>; '
            "with unreduced axes both must be on the same mesh",
        ),
        (
            '[{"a"}, {}], unreduced={"b"}',
            OTHER,
            f'needs operand 0, which is sharded <@m, [{{"a"}}, {{}}], unreduced={{"b"}}>, as {OTHER}; '
            "with unreduced axes both must be on the same mesh",
        ),
    ],
)
def test_what_cannot_be_met_is_refused_and_nothing_changes(given: str, target: str, message: str) -> None:
    setting = Setting(given)
    with pytest.raises(PassError) as caught:
        if "at once" in message:
            setting.use.make_unreduced(sharding(target))
        else:
            setting.use.meet(sharding(target), is_full=True)
    assert caught.value.diagnostic.message == f"'stablehlo.multiply' op {message}"
    assert setting.body() == ["abs", "multiply"]


def test_new_ops_have_the_place_of_the_value() -> None:
    setting = Setting(MINE)
    value = setting.use.value
    definition = value.defining_op
    assert definition is not None
    reshard = make_reshard(value, parse_sharding(OTHER))
    assert reshard.location == definition.location
    (function,) = functions(setting.root)
    argument = function.region.block.args[0]
    assert make_reshard(argument, parse_sharding(OTHER)).location == argument.location


@needs_kinds
@pytest.mark.parametrize(("kind", "code"), [(ReductionKind.SUM, 0), (ReductionKind.MAX, 1), (ReductionKind.MIN, 2)])
def test_all_reduces_say_how_they_combine(kind: ReductionKind, code: int) -> None:
    setting = Setting(f'[{{"a"}}, {{}}], unreduced={"" if kind is ReductionKind.SUM else kind.value}{{"b"}}')
    op = make_all_reduce(setting.use.value, (AxisRef("b"),), kind, parse_sharding(whole(MINE)))
    assert op.attrs["reduction_op"] == code
    setting.use.reduce(sharding(MINE))
    made = setting.use.value.defining_op
    assert made is not None
    assert {name: str(value) for name, value in made.attrs.items()} == {
        name: str(value) for name, value in op.attrs.items()
    }
    text = setting.module.with_root(setting.root).text()
    assert ("sdy.all_reduce" in text) and (kind is ReductionKind.SUM or kind.value in text)
