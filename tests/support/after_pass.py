"""The body of a function after a pass, in a short form."""

from __future__ import annotations

import re

import pytest

from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline

ABC = 'sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>\n'
_TYPE = re.compile(r" : (tensor|\(|!).*$")


def after(text: str, pipeline: str) -> list[str]:
    """The lines of the body of the first function after the passes, without types and indentation."""
    lines = iter(Module.parse(run_pipeline(Module.parse(text), pipeline).text()).text().splitlines())
    found = []
    for line in lines:
        if "func.func" in line:
            break
    for line in lines:
        if line.strip() == "}" and line.startswith("  }"):
            return found
        found.append(_TYPE.sub("", line.strip()).replace("sdy.sharding = #sdy.sharding_per_value", "sharding"))
    raise AssertionError("no function")


def refusal(text: str, pipeline: str) -> str:
    """The message with which the passes refuse a module."""
    with pytest.raises(PassError) as caught:
        run_pipeline(Module.parse(text), pipeline)
    return caught.value.diagnostic.message


def tensor_args(**shardings: str | None) -> str:
    """Arguments of type 8x8 with these shardings on `@m`, or whole shardings."""
    return ", ".join(
        f"%{name}: tensor<8x8xf32>" + ("" if text is None else f" {{sdy.sharding = #sdy.sharding{whole(text)}}}")
        for name, text in shardings.items()
    )


def whole(text: str) -> str:
    """A sharding from its dimensions, such as `[{"a"}, {}]`, or from its whole text."""
    return text if text.startswith("<") else f"<@m, {text}>"


def on(*shardings: str) -> str:
    """The attribute dictionary of an op with these shardings of its results."""
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{', '.join(map(whole, shardings))}]>}}"
