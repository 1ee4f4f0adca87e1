"""The debug attributes of random programs are the reference's.

The reference ends its process on some programs when it is asked for them; those are left out, and counted.
"""

from __future__ import annotations

from collections import Counter

import pytest

from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.reference import jaxlib_version

from .pass_compare import without_empty_edges
from .random_programs import Features, random_program
from .reference_process import Died, ReferenceProcess

OPTIONS = "debug-sharding-origins=true debug-propagation-edge-sharding=true"


def pipeline_of(propagate: str) -> str:
    """All passes that write or move debug attributes."""
    sink = OPTIONS.replace("debug-", "sink-debug-")
    return (
        f"sdy-lift-inlined-meshes,sdy-add-data-flow-edges,sdy-apply-sharding-constraints{{{OPTIONS}}},"
        f"sdy-sharding-group-import,{propagate}{{{OPTIONS}}},func.func(sdy-sink-data-flow-edges{{{sink}}})"
    )


def outcome(text: str, pipeline: str, reference: ReferenceProcess) -> str:
    """How the comparison of one program comes out: "same", "different" or "died"."""
    try:
        expected = without_empty_edges(reference.run(text, pipeline))
    except Died:
        return "died"
    result = run_pipeline(Module.parse(text), pipeline)
    result.verify()
    found = result.text(generic=True, debug_info=True)
    return "same" if found.strip() == expected.strip() else "different"


@pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="jaxlib 0.12: before, steps of constraints were in another order"
)
@pytest.mark.parametrize("propagate", ["sdy-op-priority-propagate", "sdy-user-priority-propagate"])
@pytest.mark.parametrize(
    "features",
    [
        Features(ops=6, groups=0.1),
        Features(ops=8, priorities=0.5, constraints=0.3, meshes=2, groups=0.0),
        Features(ops=8, manual=0.3, groups=0.0),
    ],
    ids=["few ops", "constraints", "manual"],
)
def test_random_programs(features: Features, propagate: str, reference: ReferenceProcess) -> None:
    pipeline = pipeline_of(propagate)
    found = {seed: outcome(random_program(seed, features), pipeline, reference) for seed in range(50)}
    assert [seed for seed, result in found.items() if result == "different"] == []
    assert Counter(found.values())["same"] > 35


def test_a_difference_is_noticed(reference: ReferenceProcess) -> None:
    text = (
        'sdy.mesh @m = <["p"=2]>\n'
        'func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"p"}]>}) -> tensor<8xf32> {\n'
        "  %0 = stablehlo.sine %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}"
    )
    pipeline = f"sdy-basic-propagate{{{OPTIONS}}}"
    assert outcome(text, pipeline, reference) == "same"

    class Forgetful(ReferenceProcess):
        def run(self, text: str, pipeline: str) -> str:
            return reference.run(text, pipeline).replace("step-0", "step-1")

    assert outcome(text, pipeline, Forgetful()) == "different"
