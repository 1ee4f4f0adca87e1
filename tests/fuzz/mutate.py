"""Mutants: what becomes of a program when some of its tokens, lines or bytes change. A seed gives one and the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from .corpus import Original, bytecodes, originals

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[\w.$]+|\s+|->|::|[^\w\s]')
_NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "16",
    "64",
    "1024",
    "-1",
    str(2**31),
    str(2**63 - 1),
    str(2**63),
    "9" * 30,
)
_NAMES = ('""', '"\\FF\\FE"', '"x"', '"y"', '"a b"', '"\\00"', "@main", "@mesh", '@"\\FF"', "%0", "?", "tensor<4xf32>",
          "tensor<*xf32>", "tensor<?xi8>", "tensor<f32>", "tensor<0x4xf32>", "complex<f32>", "i1", "!stablehlo.token",
          "unreduced", "p0", ":(2)2")  # fmt: skip
_SMALL = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "12", "16", "9223372036854775807")
_SIZES = ("0", "1", "3", "7", str(2**16), str(2**21), str(2**31), str(2**40), str(2**63 - 1), "?")
"""For all axes or dimensions. 2^20 devices, the most that are listed, make texts of 200 MB, which take their time."""
_ELEMENTS = ("i1", "i4", "ui8", "i32", "i64", "bf16", "f16", "f64", "f8E4M3FN", "complex<f32>", "index")
_COUNTS = (1, 1, 1, 1, 2, 2, 3)


def mutated_text(seed: int) -> tuple[Original, bytes]:
    """A mutant of a text, and the program that it comes from."""
    random = Random(f"text {seed}")
    original = random.choice(originals())
    text, count = original.text, random.choice(_COUNTS)
    while count > 0 or text == original.text:
        count -= 1
        text = random.choices(list(_OF_TEXT), list(_OF_TEXT.values()))[0](text, random)
    content = text.encode(errors="surrogateescape")
    if random.random() < 0.08:
        content = _bytes(content, random)
    return original, content


def mutated_bytecode(seed: int) -> tuple[str, bytes]:
    """A mutant of a bytecode, and the name of the program that it comes from."""
    random = Random(f"bytecode {seed}")
    name, original = random.choice(bytecodes())
    content, count = original, random.choice(_COUNTS)
    while count > 0 or content == original:
        count -= 1
        content = random.choices(list(_OF_BYTECODE), list(_OF_BYTECODE.values()))[0](content, random)
    return name, content


# Texts


def _change_tokens(change: Callable[[list[str], int, Random], None]) -> Callable[[str, Random], str]:
    def changed(text: str, random: Random) -> str:
        tokens = _TOKEN.findall(text)
        places = [place for place, token in enumerate(tokens) if not token.isspace()]
        if places:
            change(tokens, random.choice(places), random)
        return "".join(tokens)

    return changed


def _delete(tokens: list[str], place: int, _: Random) -> None:
    del tokens[place]


def _double(tokens: list[str], place: int, _: Random) -> None:
    tokens.insert(place, f"{tokens[place]} ")


def _swap(tokens: list[str], place: int, random: Random) -> None:
    other = random.randrange(len(tokens))
    tokens[place], tokens[other] = tokens[other], tokens[place]


def _like(tokens: list[str], place: int, random: Random) -> None:
    """Put another token of the same kind there, as other names, axes and numbers."""
    others = [token for token in tokens if _kind(token) == _kind(tokens[place])]
    tokens[place] = random.choice(others)


def _kind(token: str) -> str:
    return "0" if token.isdigit() else token[0] if token[0] in '"%@#!^' else "a" if token[0].isalpha() else token


def _number(tokens: list[str], _: int, random: Random) -> None:
    """Put another number anywhere, also into a shape."""
    places = [place for place, token in enumerate(tokens) if any(character.isdigit() for character in token)]
    if places:
        place = random.choice(places)
        digits = random.choice(list(re.finditer(r"\d+", tokens[place])))
        tokens[place] = tokens[place][: digits.start()] + random.choice(_NUMBERS) + tokens[place][digits.end() :]


def _everywhere(text: str, random: Random) -> str:
    """Put another number, element type or op for one of them wherever it stands, so that types still fit."""
    kind = random.choice(
        (r"\b\d+(?=x|>|\])|(?<=\=)\d+\b|(?<=x)\d+(?=x)", r"\b(?:[a-z]?f\d+|u?i\d+)\b", r"stablehlo\.\w+")
    )
    found = re.findall(kind, text)
    if not found:
        return text
    old = random.choice(found)
    new = random.choice((_SMALL, _ELEMENTS, found)[2 if "hlo" in old else int(not old.isdigit())])
    return re.sub(rf"(?<![a-wyzA-Z0-9_]){re.escape(old)}(?![a-wyz0-9_])", new, text)


def _sizes(text: str, random: Random) -> str:
    """Give all axes of meshes, or all dimensions of tensors, another size at once."""
    pattern = random.choice((r'("[^"\n]*"\s*=\s*)\d+', r"([<x])\d+(?=x)"))
    size = random.choice(_SIZES)
    return re.sub(pattern, lambda match: match[1] + size, text)


def _hostile(tokens: list[str], place: int, random: Random) -> None:
    tokens[place] = random.choice(_NAMES)


def _foreign(tokens: list[str], place: int, random: Random) -> None:
    """Put some tokens of another program there."""
    others = _TOKEN.findall(random.choice(originals()).text)
    start, size = random.randrange(len(others)), random.randint(1, 12)
    tokens[place : place + random.randint(0, 3)] = others[start : start + size]


def _lines(text: str, random: Random) -> str:
    """Delete, double or move a line."""
    lines = text.splitlines(keepends=True)
    line = lines.pop(random.randrange(len(lines)))
    for _ in range(random.randint(0, 2)):
        lines.insert(random.randint(0, len(lines)), line)
    return "".join(lines)


def _splice_texts(text: str, random: Random) -> str:
    other = random.choice(originals()).text
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


_OF_TEXT = {
    _change_tokens(_delete): 1,
    _change_tokens(_double): 0.5,
    _change_tokens(_swap): 1,
    _change_tokens(_like): 10,
    _change_tokens(_number): 6,
    _change_tokens(_hostile): 1,
    _change_tokens(_foreign): 0.5,
    _everywhere: 10,
    _sizes: 2,
    _lines: 3,
    _splice_texts: 0.2,
}
"""How to change a text, and how often."""


# Bytes


def _bytes(content: bytes, random: Random) -> bytes:
    """Change, delete or insert a few bytes."""
    changed = bytearray(content)
    place = random.randint(0, len(changed))
    changed[place : place + random.randint(0, 3)] = random.randbytes(random.randint(0, 3))
    return bytes(changed)


def _set_byte(content: bytes, random: Random) -> bytes:
    changed = bytearray(content)
    if changed:
        place = random.randrange(len(changed))
        changed[place] = random.choice((random.randrange(256), changed[place] ^ 1 << random.randrange(8), 0, 255))
    return bytes(changed)


def _truncate(content: bytes, random: Random) -> bytes:
    return content[: random.randint(0, len(content))]


def _range(content: bytes, random: Random) -> bytes:
    """Delete, double or move a range."""
    start = random.randint(0, len(content))
    end = start + random.randint(1, 40)
    rest = content[:start] + content[end:]
    place = random.choice((start, random.randint(0, len(rest))))
    return rest[:place] + content[start:end] * random.randint(0, 2) + rest[place:]


def _splice_bytecodes(content: bytes, random: Random) -> bytes:
    other = random.choice(bytecodes())[1]
    place = random.randint(0, len(content))
    return content[:place] + other[random.choice((place, random.randint(0, len(other)))) :]


_STRING = re.compile(rb"[\x20-\x7e\n]{3,}(?=\0)")
_STRINGS = (
    b"\xff\xfe\xfd",
    b"stablehlo.add",
    b"sdy.mesh",
    b"main",
    b"\0\0\0",
    b"x" * 40,
    b"tensor<4xf32>",
    b"\xc3\x28",
)


def _string(content: bytes, random: Random) -> bytes:
    """Put another string into the table of strings, as long as the one that is there, or not."""
    found = list(_STRING.finditer(content))
    if not found:
        return _set_byte(content, random)
    match, other = random.choice(found), random.choice((*_STRINGS, random.choice(found)[0]))
    if random.random() < 0.8:
        other = (other * len(match[0]))[: len(match[0])]
    return content[: match.start()] + other + content[match.end() :]


_OF_BYTECODE: dict[Callable[[bytes, Random], bytes], float] = {
    _bytes: 1,
    _set_byte: 10,
    _truncate: 0.3,
    _range: 1,
    _splice_bytecodes: 0.5,
    _string: 5,
}
"""How to change a bytecode, and how often."""
