"""Passes: from module to module, one file each, named as upstream's pass without its `sdy-` prefix."""
