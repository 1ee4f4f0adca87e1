"""The corpus of JAX programs and the transformer example: they lower, the reference accepts them.

`end_to_end/test_partition.py` runs them.
"""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from jaxlib.mlir import ir

from programs import PROGRAMS
from pyshardy.ir.context import make_context
from support.programs import load_example, module_text
from support.reference import run_reference

pytestmark = pytest.mark.slow

# What the corpus exists to cover; taking a program away must not lose any of these.
COVERED = """
    func.call sdy.sharding_constraint sdy.manual_computation
    stablehlo.while stablehlo.case stablehlo.optimization_barrier stablehlo.composite stablehlo.custom_call
    stablehlo.convolution stablehlo.dot_general stablehlo.reduce_window stablehlo.select_and_scatter stablehlo.reduce
    stablehlo.gather stablehlo.scatter stablehlo.dynamic_slice stablehlo.dynamic_update_slice stablehlo.sort chlo.top_k
    stablehlo.concatenate stablehlo.pad stablehlo.reverse stablehlo.slice stablehlo.reshape stablehlo.transpose
    stablehlo.fft stablehlo.complex stablehlo.bitcast_convert stablehlo.rng_bit_generator stablehlo.iota
    stablehlo.all_gather stablehlo.all_reduce stablehlo.all_to_all stablehlo.collective_permute stablehlo.reduce_scatter
"""

# Ops that other platforms keep and the CPU's lowering takes apart or calls a library for.
COVERED_ON_TPU = {
    "linear_algebra": ["stablehlo.cholesky", "stablehlo.triangular_solve", "@Eigh", "@Qr"],
    "linear_solve": ["@LuDecomposition"],
    "ragged_product": ["chlo.ragged_dot"],
}


def usable(name):
    """The program of that name, or a skipped test if it cannot be lowered here."""
    program = PROGRAMS[name]
    if reason := program.skip():
        pytest.skip(reason)
    return program


def arrays(tree):
    """The leaves of a tree in numpy; PRNG keys as their bits."""
    typed = [
        jax.random.key_data(x) if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key) else x
        for x in jax.tree.leaves(tree)
    ]
    return [np.asarray(x) for x in typed]


@pytest.mark.parametrize("name", PROGRAMS)
def test_lowers_and_passes_the_reference(name):
    text = module_text(usable(name))
    with make_context():
        assert ir.Module.parse(text).operation.verify()
    assert "#sdy.sharding_per_value" in run_reference(text, "sdy-propagation-pipeline")


@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments_fit_and_repeat(name):
    program = usable(name)
    drawn = program.concrete_args(1)
    abstract = program.build(program.mesh()).abstract_args
    assert jax.tree.structure(drawn) == jax.tree.structure(abstract)
    for value, shape in zip(jax.tree.leaves(drawn), jax.tree.leaves(abstract)):
        assert (value.shape, value.dtype) == (shape.shape, shape.dtype)
    for first, second in zip(arrays(drawn), arrays(program.concrete_args(1)), strict=True):
        np.testing.assert_array_equal(first, second)


def test_one_device_gives_the_same_results():
    program = PROGRAMS["mlp_training"]
    many, one = (program.jitted(mesh)(*program.concrete_args()) for mesh in (program.mesh(), program.one_device_mesh()))
    for left, right in zip(arrays(many), arrays(one), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)


def test_corpus_covers():
    text = "".join(module_text(program) for program in PROGRAMS.values() if not program.skip())
    present = set(re.findall(r"\w+\.\w+", text)) | ({"func.call"} if " call @" in text else set())
    assert not set(COVERED.split()) - present


@pytest.mark.parametrize("name", COVERED_ON_TPU)
def test_lowers_for_another_platform(name):
    text = module_text(PROGRAMS[name], platform="tpu")
    assert not [op for op in COVERED_ON_TPU[name] if op not in text]
    run_reference(text, "sdy-propagation-pipeline")


def test_text_is_deterministic():
    program = PROGRAMS["transformer_scan_remat"]
    assert program.lower().as_text() == module_text(program)


def test_text_with_locations():
    assert "loc(" in module_text(PROGRAMS["mlp_training"], debug_info=True)


def test_names_and_axes():
    for name, program in PROGRAMS.items():
        assert program.name == name
        assert program.source.__doc__
        assert program.mesh().size == 8


def tiny(**options):
    """A transformer small enough to run."""
    example = load_example("transformer")
    sizes = {"layers": 2, "width": 32, "heads": 4, "vocabulary": 64, "batch": 8, "sequence": 16}
    return example, example.Config(**sizes | options)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("optimizer", "learning_rate"), [("adam", 0.01), ("sgd", 0.5)])
def test_transformer_learns(optimizer, learning_rate):
    example, config = tiny(optimizer=optimizer, learning_rate=learning_rate)
    shardings = example.in_shardings(config, example.make_mesh(config))
    step = jax.jit(example.step(config), in_shardings=shardings)
    params, state, tokens, targets = example.concrete_args(config, seed=0)
    losses = []
    for _ in range(4):
        params, state, loss = step(params, state, tokens, targets)
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] - 0.5


@pytest.mark.parametrize("layers", [1, 3])
def test_transformer_lowers(layers):
    example, config = tiny(layers=layers)
    text = example.lower(config).as_text()
    propagated = run_reference(text, "sdy-propagation-pipeline")
    assert text.count("stablehlo.") > 300 * layers
    assert propagated.count("sdy.sharding") > 300 * layers


def test_transformer_says_what_devices_it_needs():
    example, config = tiny(data=16, batch=16)
    with pytest.raises(ValueError, match=r"data=16, model=2 needs 32 devices, JAX has 8; .*device_count=32"):
        example.make_mesh(config)
