"""Passes: from module to module, one file each, named like upstream's pass without its `sdy-` prefix."""
