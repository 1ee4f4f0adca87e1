"""Programs with lineax: linear systems."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from .base import f32, lower, program


@program("lineax")
def direct_solves() -> jax.stages.Lowered:
    """Cholesky, QR and singular values, on a batch of systems."""
    import lineax as lx

    def one(matrix, vector):
        positive = lx.MatrixLinearOperator(matrix @ matrix.T + jnp.eye(12), lx.positive_semidefinite_tag)
        first = lx.linear_solve(positive, vector, lx.Cholesky(), throw=False).value
        second = lx.linear_solve(lx.MatrixLinearOperator(matrix[:, :8]), vector, lx.QR(), throw=False).value
        third = lx.linear_solve(lx.MatrixLinearOperator(matrix), vector, lx.LU(), throw=False).value
        return first, second, third

    return lower(jax.vmap(one), f32(8, 12, 12), f32(8, 12), platform="tpu")


@program("lineax")
def iterative_solves() -> jax.stages.Lowered:
    """Conjugate gradients and GMRES on operators that are functions, and the gradient."""
    import lineax as lx

    def loss(kernel, vector):
        operator = lx.FunctionLinearOperator(
            lambda x: x + jnp.convolve(x, kernel, mode="same"), vector, lx.positive_semidefinite_tag
        )
        first = lx.linear_solve(operator, vector, lx.CG(rtol=1e-3, atol=1e-3, max_steps=8), throw=False).value
        general = lx.FunctionLinearOperator(lambda x: x + jnp.roll(x, 1) * 0.5, jax.eval_shape(lambda: vector))
        return jnp.sum(first * lx.linear_solve(general, vector, lx.GMRES(1e-3, 1e-3, max_steps=8), throw=False).value)

    return lower(jax.value_and_grad(loss), f32(4), f32(32))


@program("lineax")
def banded_solve() -> jax.stages.Lowered:
    """A tridiagonal system, as of the heat equation, and triangular ones."""
    import lineax as lx

    def run(diagonal, lower_diagonal, upper_diagonal, vector, triangle):
        operator = lx.TridiagonalLinearOperator(diagonal, lower_diagonal, upper_diagonal)
        heat = lx.linear_solve(operator, vector, lx.Tridiagonal(), throw=False).value
        triangular = lx.MatrixLinearOperator(triangle, lx.lower_triangular_tag)
        return lx.linear_solve(triangular, heat, lx.Triangular(), throw=False).value

    return lower(run, f32(16), f32(15), f32(15), f32(16), f32(16, 16), platform="tpu")
