"""Names and texts that are alike up to the numbers of layers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

_NAME = re.compile(r"`[^`]*`")
_OUTPUT = re.compile(r"the output (`[^`]*`) is to be ")
_NUMBER = re.compile(
    r"(?<=\[)\d+(?=\])|(?<=[A-Za-z]_)\d+(?![A-Za-z0-9])|(?<=[.'/])\d+(?=[.'/])|(?<=[Ll]ayer|[Bb]lock)\d+(?![A-Za-z0-9])"
)
"""The number of a layer: after any word with an underscore; directly after a word only if that means a layer, as `fc1`
and `fc2` are weights of one layer."""


def general(name: str) -> str:
    """A name that is the same for all members of a list, and for all layers that are numbered.

    >>> general("params['layers'][3]['w2']"), general("params['block_12']['w2']")
    ("params['layers'][*]['w2']", "params['block_*']['w2']")
    >>> general("params['layer12']['fc2']")
    "params['layer*']['fc2']"
    >>> general("params['h']['3']['w2']"), general("params['model.layers.12.w2']")
    ("params['h']['*']['w2']", "params['model.layers.*.w2']")
    """
    return _NUMBER.sub("*", name)


def general_text(text: str) -> str:
    """A text with general names; an output that is asked to be something else is any output.

    >>> general_text("dimension 1 of `params['layers'][3]['w2']`")
    "dimension 1 of `params['layers'][*]['w2']`"
    >>> general_text("`h` is [{'x'}], and the output `result['b']` is to be [{}]")
    "`h` is [{'x'}], and the output `*` is to be [{}]"
    """
    return _NAME.sub(lambda name: general(name[0]), _OUTPUT.sub("the output `*` is to be ", text))


def common(texts: Iterable[str]) -> str:
    """One text for several that are the same in general: numbers that differ become stars, and outputs are counted.

    >>> common(["`opt[0]['block_1']`", "`opt[0]['block_2']`"])
    "`opt[0]['block_*']`"
    >>> common(f"`h` is [{{'x'}}], and the output `{name}` is to be [{{}}]" for name in ("mu['b']", "nu['b']", "w[0]"))
    "`h` is [{'x'}], and the outputs `mu['b']` and 2 more are to be [{}]"
    """
    given = list(dict.fromkeys(texts))
    outputs = [general(found[1]) if (found := _OUTPUT.search(text)) else "" for text in given]
    first, *others = [text for text, output in zip(given, outputs) if output == outputs[0]]
    more = len(set(outputs)) - 1
    if more:
        return _OUTPUT.sub(rf"the outputs \g<1> and {more} more are to be ", common([first, *others]))
    numbers = [_NUMBER.findall(text) for text in others]
    at = count()

    def star(match: re.Match[str]) -> str:
        place = next(at)
        return match[0] if all(one[place] == match[0] for one in numbers) else "*"

    return _NUMBER.sub(star, first)
