"""What `pyshardy run` says of a comparison: in words, as data, and as an exit status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyshardy.runtime.compare import Difference, Verdict

CANNOT_TELL_STATUS = 3
"""Exit status where nothing is wrong, but the comparison says nothing of some output."""
_VERDICTS = {"agree": 0, "differ": 1, "cannot tell": CANNOT_TELL_STATUS}


def exit_status(differences: Sequence[Difference] | None, tolerance: float | None) -> int:
    """The exit status of a comparison: that of its worst output; 0 where nothing could be compared."""
    return _VERDICTS[_verdict(differences or (), tolerance)]


def _verdict(differences: Sequence[Difference], tolerance: float | None) -> str:
    found = {difference.verdict(tolerance).value for difference in differences}
    return next((name for name in ("differ", "cannot tell") if name in found), "agree")


def comparison_to_json(differences: Sequence[Difference] | None, tolerance: float | None) -> dict[str, Any] | None:
    """The comparison as JSON-ready data; None where nothing could be compared."""
    if differences is None:
        return None
    verdict = _verdict(differences, tolerance)
    return {
        "equal": verdict == "agree",
        "verdict": verdict,
        "tolerance": _tolerance(differences, tolerance),
        "outputs": [_row(difference, tolerance) for difference in differences],
    }


def _tolerance(differences: Sequence[Difference], tolerance: float | None) -> float | None:
    """The tolerance that decides; None if what rounding does decides."""
    if tolerance is None and any(difference.noise_ratio is None for difference in differences):
        from pyshardy.runtime.compare import TOLERANCE

        return TOLERANCE
    return tolerance


def _row(difference: Difference, tolerance: float | None) -> dict[str, Any]:
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


def print_comparison(differences: Sequence[Difference] | None, tolerance: float | None) -> None:
    """Print the largest error, the outputs that differ, and those of which a comparison says little or nothing."""
    if not differences:
        return
    verdicts = [difference.verdict(tolerance) for difference in differences]
    for difference, verdict in zip(differences, verdicts):
        if (text := _remark(difference, verdict, tolerance)) is not None:
            print(f"output {difference.name}: {text}")
    values = [verdict.value for verdict in verdicts]
    counts = {"differ": values.count("differ"), "cannot tell of": values.count("cannot tell")}
    found = ", ".join(
        f"{count} differ" if name == "differ" else f"cannot tell of {count}" for name, count in counts.items() if count
    )
    count = f"{len(differences)} output{'s' * (len(differences) > 1)}"
    print(f"compared {count} with one device: {found or 'all agree'}; {_largest(differences, tolerance)}")


def _largest(differences: Sequence[Difference], tolerance: float | None) -> str:
    """The output that is farthest off, as that is measured."""
    if (allowed := _tolerance(differences, tolerance)) is not None:
        worst = max(differences, key=lambda difference: difference.max_absolute_error)
        relative = max(difference.max_relative_error for difference in differences)
        measure = f"relative {relative:.3g}, tolerance {allowed:g}"
    else:
        worst = max(differences, key=lambda difference: difference.noise_ratio or 0.0)
        measure = f"{worst.noise_ratio:.2g} of what rounding does"
    return f"largest error {worst.max_absolute_error:.3g} in {worst.name} ({measure})"


def _remark(difference: Difference, verdict: Verdict, tolerance: float | None) -> str | None:
    """What to say of one output; nothing if it agrees and an error of a percent would have been noticed."""
    noise = difference.noise
    if verdict.value == "differ":
        return f"error {difference.max_absolute_error:.3g}"
    if noise is None or tolerance is not None:
        return None
    if verdict.value == "cannot tell" and noise.unknown > noise.share:
        return f"cannot tell: {noise.unknown:.0%} of its values are no finite numbers"
    moves = f"rounding alone moves it by {noise.share:.0%}"
    if verdict.value == "cannot tell":
        return f"cannot tell: {moves}"
    if difference.is_blunt:
        least = f"{noise.resolution:.2g} of a single value, or {noise.factor_resolution:.2g} of all values"
        return f"{moves}; an error below {least} would go unnoticed"
    return None
