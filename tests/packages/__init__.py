"""JAX programs written with published packages: `PROGRAMS` by name. The packages are imported when one is lowered.

>>> PROGRAMS["flax.linen_lstm_step"].packages
('flax',)
"""

from __future__ import annotations

from . import (
    blackjax,
    brax,
    diffrax,
    distrax,
    e3nn_jax,
    equinox,
    flax,
    flowjax,
    haiku,
    jax_md,
    jaxopt,
    jraph,
    keras,
    lineax,
    numpyro,
    optax,
    optimistix,
    ott,
    rlax,
    tinygp,
)
from .base import Program

__all__ = ["PROGRAMS", "Program"]

MODULES = (
    *(flax, haiku, equinox, keras, optax, jaxopt, optimistix, lineax, jraph, e3nn_jax, diffrax, brax, jax_md),
    *(distrax, numpyro, blackjax, tinygp, flowjax, ott, rlax),
)

PROGRAMS: dict[str, Program] = {
    value.name: value for module in MODULES for value in vars(module).values() if isinstance(value, Program)
}
