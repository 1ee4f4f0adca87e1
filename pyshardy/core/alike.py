"""Names and texts that are alike up to the numbers of layers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

_NAME = re.compile(r"`[^`]*`")
_NUMBER = re.compile(r"(?<=\[)\d+(?=\])|(?<=[A-Za-z]_)\d+(?![A-Za-z0-9])|(?<=[.'/])\d+(?=[.'/])")


def general(name: str) -> str:
    """A name that is the same for all members of a list, and for all layers that are numbered.

    >>> general("params['layers'][3]['w2']"), general("params['block_12']['w2']")
    ("params['layers'][*]['w2']", "params['block_*']['w2']")
    >>> general("params['h']['3']['w2']"), general("params['model.layers.12.w2']")
    ("params['h']['*']['w2']", "params['model.layers.*.w2']")
    """
    return _NUMBER.sub("*", name)


def general_text(text: str) -> str:
    """A text with general names.

    >>> general_text("dimension 1 of `params['layers'][3]['w2']`")
    "dimension 1 of `params['layers'][*]['w2']`"
    """
    return _NAME.sub(lambda name: general(name[0]), text)


def common(texts: Iterable[str]) -> str:
    """One text for several that are the same in general: only numbers that differ become stars.

    >>> common(["`opt[0]['block_1']`", "`opt[0]['block_2']`"])
    "`opt[0]['block_*']`"
    """
    first, *others = dict.fromkeys(texts)
    numbers = [_NUMBER.findall(text) for text in others]
    at = count()

    def star(match: re.Match[str]) -> str:
        place = next(at)
        return match[0] if all(one[place] == match[0] for one in numbers) else "*"

    return _NUMBER.sub(star, first)
