"""The verdict of `pyshardy run`: in words, as data, and as an exit status."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyshardy.cli.printing import program

if TYPE_CHECKING:
    from pyshardy.runtime.compare import OutputDifference

CANNOT_TELL_STATUS = 3
"""The exit status if nothing is wrong, but the comparison has no verdict on some output."""
_MOST_REMARKS = 8
"""The number of differing outputs that are named by default."""
_VERDICTS = {"agree": 0, "differ": 1, "cannot tell": CANNOT_TELL_STATUS}


def exit_status(differences: Sequence[OutputDifference] | None, tolerance: float | None) -> int:
    """The exit status of a comparison: that of its worst output; 0 if nothing could be compared."""
    return _VERDICTS[_verdict(differences or (), tolerance)]


def _verdict(differences: Sequence[OutputDifference], tolerance: float | None) -> str:
    found = {difference.verdict(tolerance).value for difference in differences}
    return next((name for name in ("differ", "cannot tell") if name in found), "agree")


def comparison_to_json(
    differences: Sequence[OutputDifference] | None, tolerance: float | None
) -> dict[str, Any] | None:
    """The comparison as JSON-ready data; None if nothing could be compared."""
    if differences is None:
        return None
    verdict = _verdict(differences, tolerance)
    return {
        "equal": verdict == "agree",
        "verdict": verdict,
        "tolerance": _tolerance(differences, tolerance),
        "outputs": [_row(difference, tolerance) for difference in differences],
    }


def _tolerance(differences: Sequence[OutputDifference], tolerance: float | None) -> float | None:
    """The tolerance that decides; None if the effect of rounding decides."""
    if tolerance is None and any(difference.noise_ratio is None for difference in differences):
        from pyshardy.runtime.compare import TOLERANCE

        return TOLERANCE
    return tolerance


def _row(difference: OutputDifference, tolerance: float | None) -> dict[str, Any]:
    noise = difference.noise
    return {
        "name": difference.name,
        "verdict": difference.verdict(tolerance).value,
        "max_absolute_error": difference.max_absolute_error,
        "max_relative_error": difference.max_relative_error,
        "error_by_rounding": difference.noise_ratio,
        "moved_by_rounding": None if noise is None else noise.share,
        "least_noticed_in_one_value": None if noise is None else noise.resolution,
        "least_noticed_in_all_values": None if noise is None else noise.factor_resolution,
    }


def comparison_texts(
    differences: Sequence[OutputDifference] | None,
    tolerance: float | None,
    unfold: bool = False,
    details: bool = False,
) -> list[str]:
    """That all outputs agree; else the outputs that differ or cannot be judged, and the largest error.

    Args:
        differences: The distance of every output; None if unknown.
        tolerance: The largest error that is allowed; None if the effect of rounding decides.
        unfold: Whether to name all such outputs, not only the worst.
        details: Whether to say in any case how large errors are, and which errors would go unnoticed.
    """
    if not differences:
        return []
    values = [difference.verdict(tolerance).value for difference in differences]
    if not details and set(values) == {"agree"}:
        return [_agreement(differences, tolerance)]
    texts = []
    for value, most in (("differ", _MOST_REMARKS), ("cannot tell", _MOST_REMARKS), ("agree", 1)):
        if details or value != "agree":
            found = [difference for difference, verdict in zip(differences, values) if verdict == value]
            texts += _remarks(value, found, tolerance, None if unfold else most)
    counts = {"differ": values.count("differ"), "cannot be judged": values.count("cannot tell")}
    said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    count = f"{len(differences)} output{'s' * (len(differences) > 1)}"
    return [*texts, f"compared {count} with one device: {said or 'all agree'}; {_largest(differences, tolerance)}"]


def _agreement(differences: Sequence[OutputDifference], tolerance: float | None) -> str:
    count, allowed = len(differences), _tolerance(differences, tolerance)
    outputs = f"all {count} outputs equal" if count > 1 else "the output equals"
    return f"{outputs} one device's within {'rounding' if allowed is None else f'the tolerance {allowed:g}'}"


def _remarks(verdict: str, differences: list[OutputDifference], tolerance: float | None, most: int | None) -> list[str]:
    """The outputs of one verdict; if not all are named, the worst first."""
    remarked = [difference for difference in differences if _remark(difference, verdict, tolerance) is not None]
    if most is not None and len(remarked) > most:
        remarked.sort(key=_farness if verdict == "differ" else _unnoticed, reverse=True)
    texts = [f"output {difference.name}: {_remark(difference, verdict, tolerance)}" for difference in remarked[:most]]
    if most is not None and len(remarked) > most:
        like = {"differ": "differ", "cannot tell": "cannot be judged"}.get(verdict, "have a similar remark")
        texts.append(f"{len(remarked) - most} more outputs {like}; --all shows them")
    return texts


def _unnoticed(difference: OutputDifference) -> float:
    """The largest error of a value that would go unnoticed in an output."""
    return 0.0 if difference.noise is None else difference.noise.resolution


def _farness(difference: OutputDifference) -> float:
    """How far an output is off, as that is measured."""
    return difference.max_absolute_error if difference.noise_ratio is None else difference.noise_ratio


def next_lines(sizes: Sequence[str]) -> list[str]:
    """What to try after the example, of these sizes, has run."""
    name, example = program(), shlex.join(["example", *sizes])
    commands = {
        f"{name} show {example}": "all tensors, and who sharded them",
        f"{name} partition {example}": "all collectives, and why",
        f"{name} show FILE": "your own program: see README.md",
    }
    width = max(map(len, commands))
    lines = [f"{command:{width}}  {text}" for command, text in commands.items()]
    return ["", *(f"{'next: ' if number == 0 else '      '}{line}" for number, line in enumerate(lines))]


def _largest(differences: Sequence[OutputDifference], tolerance: float | None) -> str:
    """The output that is farthest off, as that is measured."""
    if (allowed := _tolerance(differences, tolerance)) is not None:
        worst = max(differences, key=lambda difference: difference.max_absolute_error)
        relative = max(difference.max_relative_error for difference in differences)
        measure = f"relative {relative:.3g}, tolerance {allowed:g}"
    else:
        worst = max(differences, key=lambda difference: difference.noise_ratio or 0.0)
        measure = f"{worst.noise_ratio:.2g} times the rounding error"
    return f"largest error {worst.max_absolute_error:.3g} in {worst.name} ({measure})"


def _remark(difference: OutputDifference, verdict: str, tolerance: float | None) -> str | None:
    """What to say of one output; nothing if it agrees and an error of a percent would have been noticed."""
    noise = difference.noise
    if verdict == "differ":
        return f"error {difference.max_absolute_error:.3g}"
    if noise is None or tolerance is not None:
        return None
    if verdict == "cannot tell" and noise.unknown > noise.share:
        return f"cannot tell: {noise.unknown:.0%} of its values are not finite numbers"
    moves = f"rounding alone moves it by {noise.share:.0%}"
    if verdict == "cannot tell":
        return f"cannot tell: {moves}"
    if difference.is_blunt:
        least = f"{noise.resolution:.2g} of a single value, or {noise.factor_resolution:.2g} of all values"
        return f"{moves}; an error below {least} would go unnoticed"
    return None
