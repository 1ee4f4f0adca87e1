"""Programs with ott-jax: optimal transport."""

from __future__ import annotations

import jax

from .base import f32, lower, program


@program("ott")
def sinkhorn_gradient() -> jax.stages.Lowered:
    """The gradient of the regularized transport cost between two point clouds."""
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    def cost(x, y):
        problem = linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1))
        return sinkhorn.Sinkhorn(max_iterations=20)(problem).reg_ot_cost

    return lower(jax.value_and_grad(cost), f32(16, 8), f32(12, 8))


@program("ott")
def gromov_wasserstein() -> jax.stages.Lowered:
    """Transport between spaces of different dimensions."""
    from ott.geometry import pointcloud
    from ott.problems.quadratic import quadratic_problem
    from ott.solvers.linear import sinkhorn
    from ott.solvers.quadratic import gromov_wasserstein as gw

    def run(x, y):
        problem = quadratic_problem.QuadraticProblem(pointcloud.PointCloud(x, x), pointcloud.PointCloud(y, y))
        solver = gw.GromovWasserstein(sinkhorn.Sinkhorn(max_iterations=10), epsilon=0.1, max_iterations=4)
        return solver(problem).matrix

    return lower(run, f32(16, 8), f32(12, 4))


@program("ott")
def soft_sort() -> jax.stages.Lowered:
    """Soft sorting and ranks by transport."""
    from ott.tools import soft_sort as soft

    def run(x):
        return soft.sort(x, axis=-1, epsilon=0.1)[:, -4:], soft.ranks(x, axis=-1, epsilon=0.1)

    return lower(run, f32(8, 16))
