"""Small programs that XLA simplifies, or writes in another form: name to arguments, ops and results.

Types are written short, `4x8f` for `tensor<4x8xf32>` and so on; the last letters stand for f32, bf16, i1, i32, ui32 and
complex numbers.
"""

from __future__ import annotations

import re

_ELEMENTS = {"f": "f32", "h": "bf16", "b": "i1", "i": "i32", "u": "ui32", "c": "complex<f32>"}
_SHORT = re.compile(r"<((?:\d+x)*\d*)([fhbiuc])>")


def long(text: str) -> str:
    """The text with types written out.

    >>> long("tanh %a : <4x8f>, <i>")
    'tanh %a : tensor<4x8xf32>, tensor<i32>'
    """
    return _SHORT.sub(lambda found: f"tensor<{_dims(found[1])}{_ELEMENTS[found[2]]}>", text)


def _dims(text: str) -> str:
    return f"{text}x" if text and not text.endswith("x") else text


_BINARY = "add and divide maximum minimum multiply or remainder subtract xor"
_UNARY = "abs cbrt ceil cosine exponential floor log logistic negate rsqrt sign sine sqrt tan tanh"
_FLOATS = "%c = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : <4xf>\n%s = stablehlo.constant dense<2.0> : <4xf>"
_INTS = "%c = stablehlo.constant dense<[1, 2, 3, 4]> : <4xi>\n%s = stablehlo.constant dense<{}> : <4xi>"
_BOOLS = "and", "or", "xor"
CASES: dict[str, tuple[str, str, str]] = {}


def _case(name: str, arguments: str, body: str, results: str) -> None:
    CASES[name] = arguments, body, results


for _op in _UNARY.split():
    _case(f"fold {_op}", "", f"{_FLOATS}\n%0 = stablehlo.{_op} %s : <4xf>", "%0 : <4xf>")
for _op in _BINARY.split():
    _case(f"fold {_op} of integers", "", f"{_INTS.format(3)}\n%0 = stablehlo.{_op} %c, %s : <4xi>", "%0 : <4xi>")
    for _value in (0, 1, -1):
        for _operands in ("%a, %s", "%s, %a", "%a, %a"):
            _case(
                f"{_op} of integers {_operands} {_value}",
                "%a: <4xi>",
                f"{_INTS.format(_value)}\n%0 = stablehlo.{_op} {_operands} : <4xi>",
                "%0 : <4xi>",
            )
            if _op not in _BOOLS:
                _case(
                    f"{_op} of floats {_operands} {_value}",
                    "%a: <4xf>",
                    f"%s = stablehlo.constant dense<{_value}.0> : <4xf>\n%0 = stablehlo.{_op} {_operands} : <4xf>",
                    "%0 : <4xf>",
                )
for _direction in ("EQ", "NE", "LT"):
    for _value in ("true", "false"):
        _case(
            f"compare {_direction} {_value}",
            "%a: <4xb>",
            f"%s = stablehlo.constant dense<{_value}> : <4xb>\n"
            f"%0 = stablehlo.compare {_direction}, %a, %s : (<4xb>, <4xb>) -> <4xb>",
            "%0 : <4xb>",
        )
for _op in ("add", "maximum", "minimum", "multiply"):
    for _operands in ("%a, %b", "%a, %a", "%a, %s", "%s, %a", "%n, %a", "%a, %m"):
        _case(
            f"{_op} of truth values {_operands}",
            "%a: <4xb>, %b: <4xb>",
            "%s = stablehlo.constant dense<true> : <4xb>\n%n = stablehlo.constant dense<false> : <4xb>\n"
            "%m = stablehlo.constant dense<[true, false, true, false]> : <4xb>\n"
            f"%0 = stablehlo.{_op} {_operands} : <4xb>",
            "%0 : <4xb>",
        )
    _case(
        f"{_op} of truth values in a reduction",
        "%a: <4xb>, %b: <b>",
        f"%0 = stablehlo.reduce(%a init: %b) applies stablehlo.{_op} across dimensions = [0] : (<4xb>, <b>) -> <b>",
        "%0 : <b>",
    )
_case("select the same", "%p: <4xb>, %a: <4xf>", "%0 = stablehlo.select %p, %a, %a : <4xb>, <4xf>", "%0 : <4xf>")
_case(
    "select by what is negated and broadcast",
    "%p: <4xb>, %a: <4x8f>, %b: <4x8f>",
    "%n = stablehlo.not %p : <4xb>\n%q = stablehlo.broadcast_in_dim %n, dims = [0] : (<4xb>) -> <4x8b>\n"
    "%0 = stablehlo.select %q, %a, %b : <4x8b>, <4x8f>",
    "%0 : <4x8f>",
)
_case(
    "select by a scalar", "%p: <b>, %a: <4xf>, %b: <4xf>", "%0 = stablehlo.select %p, %a, %b : <b>, <4xf>", "%0 : <4xf>"
)
_case(
    "clamp by scalars",
    "%l: <f>, %a: <4xf>",
    "%0 = stablehlo.clamp %l, %a, %l : (<f>, <4xf>, <f>) -> <4xf>",
    "%0 : <4xf>",
)
_case("convert to truth values", "%a: <4xf>", "%0 = stablehlo.convert %a : (<4xf>) -> <4xb>", "%0 : <4xb>")
_case(
    "convert bf16 constants",
    "",
    f"{_FLOATS}\n%0 = stablehlo.convert %c : (<4xf>) -> <4xh>\n%1 = stablehlo.add %0, %0 : <4xh>",
    "%1 : <4xh>",
)
_case(
    "complex numbers",
    "%a: <4xf>, %b: <4xf>",
    "%0 = stablehlo.complex %a, %b : <4xc>\n%1 = stablehlo.real %0 : (<4xc>) -> <4xf>\n%2 = stablehlo.imag %0 : (<4xc>) -> <4xf>",
    "%1, %2 : <4xf>, <4xf>",
)
_case(
    "broadcasts",
    "%a: <8f>, %b: <4x8f>, %s: <1x8f>",
    "%0 = stablehlo.broadcast_in_dim %a, dims = [1] : (<8f>) -> <1x8f>\n"
    "%1 = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (<1x8f>) -> <4x8f>\n"
    "%2 = stablehlo.broadcast_in_dim %b, dims = [2, 0] : (<4x8f>) -> <8x3x4f>\n"
    "%3 = stablehlo.broadcast_in_dim %b, dims = [1, 0] : (<4x8f>) -> <8x4f>\n"
    "%4 = stablehlo.broadcast_in_dim %1, dims = [1, 2] : (<4x8f>) -> <2x4x8f>\n"
    "%5 = stablehlo.broadcast_in_dim %s, dims = [1, 2] : (<1x8f>) -> <2x4x8f>",
    "%2, %3, %4, %5 : <8x3x4f>, <8x4f>, <2x4x8f>, <2x4x8f>",
)
_case(
    "transposes of sizes of 1",
    "%a: <8x12x4x1x8f>",
    "%0 = stablehlo.transpose %a, dims = [3, 0, 1, 2, 4] : (<8x12x4x1x8f>) -> <1x8x12x4x8f>\n"
    "%1 = stablehlo.transpose %0, dims = [1, 3, 4, 0, 2] : (<1x8x12x4x8f>) -> <8x4x8x1x12f>",
    "%0, %1 : <1x8x12x4x8f>, <8x4x8x1x12f>",
)
_case(
    "slices of a concatenation",
    "%a: <4x8f>, %b: <4x8f>",
    "%0 = stablehlo.concatenate %a, %b, dim = 0 : (<4x8f>, <4x8f>) -> <8x8f>\n"
    "%1 = stablehlo.slice %0 [4:6, 0:8] : (<8x8f>) -> <2x8f>\n%2 = stablehlo.slice %0 [3:6, 0:8] : (<8x8f>) -> <3x8f>",
    "%1, %2 : <2x8f>, <3x8f>",
)
_case(
    "slices of a concatenation that become the only one",
    "%a: <1x8f>, %b: <3x8f>, %c: <4x8f>",
    "%0 = stablehlo.concatenate %a, %b, %c, dim = 0 : (<1x8f>, <3x8f>, <4x8f>) -> <8x8f>\n"
    "%1 = stablehlo.slice %0 [1:7, 0:8] : (<8x8f>) -> <6x8f>\n%2 = stablehlo.slice %0 [0:1, 0:8] : (<8x8f>) -> <1x8f>",
    "%1, %2 : <6x8f>, <1x8f>",
)
_case(
    "concatenations",
    "%a: <4xf>",
    f"{_FLOATS}\n%0 = stablehlo.concatenate %a, %a, dim = 0 : (<4xf>, <4xf>) -> <8xf>\n"
    "%1 = stablehlo.concatenate %0, %a, dim = 0 : (<8xf>, <4xf>) -> <12xf>\n"
    "%2 = stablehlo.concatenate %c, %s, dim = 0 : (<4xf>, <4xf>) -> <8xf>",
    "%1, %2 : <12xf>, <8xf>",
)
_case(
    "iotas",
    "",
    "%0 = stablehlo.iota dim = 1 : <4x8i>\n%1 = stablehlo.iota dim = 0 : <1x8i>\n%2 = stablehlo.iota dim = 0 : <4xi>",
    "%0, %1, %2 : <4x8i>, <1x8i>, <4xi>",
)
_INDICES = "%z = stablehlo.constant dense<0> : <i>\n%n = stablehlo.constant dense<9> : <i>\n"
_case(
    "indices that are constants",
    "%a: <4x8f>, %u: <4x8f>",
    f"{_INDICES}%0 = stablehlo.dynamic_slice %a, %n, %z, sizes = [2, 3] : (<4x8f>, <i>, <i>) -> <2x3f>\n"
    "%1 = stablehlo.dynamic_update_slice %a, %u, %z, %z : (<4x8f>, <4x8f>, <i>, <i>) -> <4x8f>\n"
    "%i = stablehlo.constant dense<[9, 2]> : <2xi>\n"
    '%2 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
    "collapsed_slice_dims = [0], start_index_map = [0, 1], index_vector_dim = 0>, slice_sizes = array<i64: 1, 4>}> "
    ": (<4x8f>, <2xi>) -> <4xf>",
    "%0, %1, %2 : <2x3f>, <4x8f>, <4xf>",
)
_case(
    "an index that is large without a sign",
    "%a: <4x8f>",
    "%n = stablehlo.constant dense<4294967295> : <u>\n"
    "%0 = stablehlo.dynamic_slice %a, %n, %n, sizes = [2, 3] : (<4x8f>, <u>, <u>) -> <2x3f>",
    "%0 : <2x3f>",
)
for _what, _body in {
    "negate": "%0 = stablehlo.negate %a : <0x4f>",
    "optimization_barrier": "%0 = stablehlo.optimization_barrier %a : <0x4f>",
    "custom_call": "%0 = stablehlo.custom_call @f(%a) : (<0x4f>) -> <0x4f>",
    "iota": "%0 = stablehlo.iota dim = 0 : <0x4f>",
    "slice": "%0 = stablehlo.slice %b [2:2, 0:4] : (<8x4f>) -> <0x4f>",
}.items():
    _case(f"{_what} without elements", "%a: <0x4f>, %b: <8x4f>", _body, "%0 : <0x4f>")
_case(
    "a product along a dimension of size 0",
    "%a: <3x0f>, %b: <0x4f>",
    "%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (<3x0f>, <0x4f>) -> <3x4f>",
    "%0 : <3x4f>",
)
for _shape, _along in {"4xf": "[0]", "f": "[0, 1]"}.items():
    _case(
        f"a sum of nothing to {_shape}",
        "%a: <0x4f>, %s: <f>",
        f"%0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = {_along} : (<0x4f>, <f>) -> <{_shape}>",
        f"%0 : <{_shape}>",
    )
_case(
    "a constant of equal complex numbers",
    "%p: <4xb>, %a: <4xc>",
    "%c = stablehlo.constant dense<(0.0, 0.0)> : <4xc>\n%0 = stablehlo.select %p, %a, %c : <4xb>, <4xc>",
    "%0 : <4xc>",
)
_case(
    "a pad of nothing",
    "%a: <4xf>, %s: <f>",
    "%0 = stablehlo.pad %a, %s, low = [0], high = [0], interior = [0] : (<4xf>, <f>) -> <4xf>",
    "%0 : <4xf>",
)
_case("a reverse of one", "%a: <1x8f>", "%0 = stablehlo.reverse %a, dims = [0] : <1x8f>", "%0 : <1x8f>")
_case(
    "reverses of constants",
    "",
    f"{_FLOATS}\n%0 = stablehlo.reverse %c, dims = [0] : <4xf>\n%1 = stablehlo.reverse %s, dims = [0] : <4xf>",
    "%0, %1 : <4xf>, <4xf>",
)
for _op in ("and", "maximum", "minimum", "multiply", "or", "xor"):
    for _element, _start, _values in (
        ("b", "false", "true"), ("b", "true", "true"), ("b", "true", "[[true, false], [false, true]]"),
        ("i", "3", "6"), ("i", "-1", "[[1, 2], [3, 4]]"),
    ):  # fmt: skip
        _case(
            f"reduction of {_values} by {_op} from {_start}",
            "",
            f"%s = stablehlo.constant dense<{_start}> : <{_element}>\n%c = stablehlo.constant dense<{_values}> : <2x2{_element}>\n"
            f"%0 = stablehlo.reduce(%c init: %s) applies stablehlo.{_op} across dimensions = [0] "
            f": (<2x2{_element}>, <{_element}>) -> <2{_element}>",
            f"%0 : <2{_element}>",
        )
_case(
    "numbers that are nearly all the same",
    "",
    "%0 = stablehlo.constant dense<[0.0, -0.0]> : <2xf>\n%1 = stablehlo.constant dense<7> : <1x1i>",
    "%0, %1 : <2xf>, <1x1i>",
)
_LOOP = (
    "%0:3 = stablehlo.while(%w = %a, %i = %z, %x = %b) : <4xf>, <i>, <4xf>\n cond {\n"
    " %m = stablehlo.constant dense<3> : <i>\n %l = stablehlo.compare LT, %i, %m : (<i>, <i>) -> <b>\n stablehlo.return %l : <b>\n"
    "} do {\n %o = stablehlo.constant dense<1> : <i>\n %j = stablehlo.add %i, %o : <i>\n %y = stablehlo.multiply %x, %w : <4xf>\n"
    " stablehlo.return %w, %j, %y : <4xf>, <i>, <4xf>\n}"
)
_case("a loop with an invariant", "%a: <4xf>, %b: <4xf>", f"{_INDICES}{_LOOP}", "%0#2, %0#0 : <4xf>, <4xf>")
_case(
    "a branch that is known",
    "%a: <4xf>",
    f'{_INDICES}%0 = "stablehlo.case"(%z) ({{\n stablehlo.return %a : <4xf>\n}}, {{\n %n2 = stablehlo.negate %a : <4xf>\n stablehlo.return %n2 : <4xf>\n}}) : (<i>) -> <4xf>',
    "%0 : <4xf>",
)
_case(
    "branches",
    "%p: <b>, %a: <4xf>, %b: <4xf>",
    '%t = stablehlo.tanh %b : <4xf>\n%0 = "stablehlo.if"(%p) ({\n stablehlo.return %t : <4xf>\n}, {\n %n = stablehlo.add %a, %b : <4xf>\n stablehlo.return %n : <4xf>\n}) : (<b>) -> <4xf>',
    "%0 : <4xf>",
)
_CHLO = "acos acosh asinh atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma sinh square"
for _op in _CHLO.split():
    _case(f"chlo.{_op}", "%a: <4xf>", f"%0 = chlo.{_op} %a : <4xf> -> <4xf>", "%0 : <4xf>")
_case(
    "chlo.top_k", "%a: <2x8f>", "%v, %i = chlo.top_k(%a, k = 3) : <2x8f> -> (<2x3f>, <2x3i>)", "%v, %i : <2x3f>, <2x3i>"
)


def text_of(name: str) -> str:
    """The module of a case."""
    arguments, body, results = CASES[name]
    types = results.partition(" : ")[2]
    return long(f"func.func @main({arguments}) -> ({types}) {{\n{body}\nreturn {results}\n}}")
