"""What is said of a comparison, and with which exit status."""

from __future__ import annotations

import numpy as np
import pytest

from pyshardy.cli.verdict import comparison_texts, comparison_to_json, exit_status
from pyshardy.runtime.compare import OutputDifference
from pyshardy.runtime.noise import Noise

ONES = np.ones(100, np.float32)


def noise(move: float) -> Noise:
    """The noise of an output that rounding moves by this share, up and down."""
    signs = np.where(np.arange(100) % 2, 1, -1)
    return Noise(ONES, [(ONES + move * signs).astype(np.float32), (ONES - move * signs).astype(np.float32)])


AGREES = OutputDifference("a", 1e-6, 5e-7, 0.8, noise(1e-6))
DIFFERS = OutputDifference("b", 0.5, 0.25, 123.0, noise(1e-6))
BLUNT = OutputDifference("c", 0.01, 0.005, 1.0, noise(0.01))
CHAOTIC = OutputDifference("d", 1.0, 0.5, 1.0, noise(2.0))
EXACT = OutputDifference("e", 0.0, 0.0, 0.0, noise(2.0))
NO_NUMBERS = OutputDifference("f", 0.0, 0.0, 0.0, Noise(np.full(4, np.nan), [np.full(4, np.nan)]))


@pytest.mark.parametrize(
    ("differences", "tolerance", "status"),
    [
        ([AGREES, BLUNT, EXACT], None, 0),
        ([AGREES, CHAOTIC], None, 3),
        ([NO_NUMBERS], None, 3),
        ([CHAOTIC, DIFFERS], None, 1),
        ([DIFFERS], 0.25, 0),
        ([DIFFERS], 0.24, 1),
        ([CHAOTIC], 0.5, 0),
        ([OutputDifference("a", 1.0, 0.001)], None, 0),
        ([OutputDifference("a", 1.0, 0.0011)], None, 1),
        ([OutputDifference("a", float("inf"), float("inf"), float("inf"), noise(1.0))], None, 1),
        ([OutputDifference("a", 1.0, 0.1, float("nan"), noise(1.0))], None, 1),
        ([OutputDifference("a", float("inf"), float("inf"))], 1e300, 1),
        ([], None, 0),
        (None, None, 0),
    ],
)
def test_the_worst_output_decides(differences: list[OutputDifference], tolerance: float | None, status: int) -> None:
    assert exit_status(differences, tolerance) == status


@pytest.mark.parametrize(
    ("differences", "tolerance", "text"),
    [
        ([AGREES], None, "the output equals one device's within rounding\n"),
        ([AGREES, BLUNT, EXACT], None, "all 3 outputs equal one device's within rounding\n"),
        ([DIFFERS], 0.25, "the output equals one device's within the tolerance 0.25\n"),
        ([OutputDifference("a", 0.5, 0.0)] * 2, None, "all 2 outputs equal one device's within the tolerance 0.001\n"),
        ([AGREES, BLUNT, DIFFERS], None, "output b: error 0.5\ncompared 3 outputs with one device: 1 differ; largest "
                                         "error 0.5 in b (1.2e+02 times the rounding error)\n"),
        ([AGREES, DIFFERS], None, "output b: error 0.5\ncompared 2 outputs with one device: 1 differ; largest error 0.5 "
                                  "in b (1.2e+02 times the rounding error)\n"),
        ([DIFFERS, CHAOTIC], None, "output b: error 0.5\noutput d: cannot tell: rounding alone moves it by 200%\ncompared "
                                   "2 outputs with one device: 1 differ, 1 cannot be judged; largest error 0.5 in b (1.2e+02 "
                                   "times the rounding error)\n"),
        ([NO_NUMBERS], None, "output f: cannot tell: 100% of its values are not finite numbers\ncompared 1 output with one "
                             "device: 1 cannot be judged; largest error 0 in f (0 times the rounding error)\n"),
        ([OutputDifference("a", 3.0, 0.5), OutputDifference("b", 4.0, 0.0), CHAOTIC], 0.25,
         "output a: error 3\noutput d: error 1\ncompared 3 outputs with one device: 2 differ; largest error 4 in b "
         "(relative 0.5, tolerance 0.25)\n"),
        ([], None, ""),
        (None, None, ""),
    ],
)  # fmt: skip
def test_what_is_said(differences: list[OutputDifference], tolerance: float | None, text: str) -> None:
    assert comparison_texts(differences, tolerance) == text.splitlines()


@pytest.mark.parametrize(
    ("differences", "text"),
    [
        ([AGREES], "compared 1 output with one device: all agree; largest error 1e-06 in a (0.8 times the rounding "
                   "error)\n"),
        ([AGREES, BLUNT], "output c: rounding alone moves it by 1%; an error below 0.06 of a single value, or 0.006 "
                          "of all values would go unnoticed\ncompared 2 outputs with one device: all agree; "
                          "largest error 0.01 in c (1 times the rounding error)\n"),
        ([OutputDifference("a", 0.5, 0.0)], "compared 1 output with one device: all agree; largest error 0.5 in a "
                                            "(relative 0, tolerance 0.001)\n"),
    ],
)  # fmt: skip
def test_what_is_said_in_detail(differences: list[OutputDifference], text: str) -> None:
    assert comparison_texts(differences, None, details=True) == text.splitlines()


def remarks(differences: list[OutputDifference], unfold: bool = False) -> list[str]:
    """What is said of single outputs."""
    *texts, last = comparison_texts(differences, None, unfold, details=True)
    assert last.startswith("compared")
    return texts


def test_of_many_outputs_the_worst_are_named() -> None:
    differing = [OutputDifference(f"b{number}", 0.5, 0.25, 100.0 + number, noise(1e-6)) for number in range(20)]
    found = remarks(differing)
    assert found[0] == "output b19: error 0.5"
    assert found[-2:] == ["output b12: error 0.5", "12 more outputs differ; --all shows them"]
    assert len(remarks(differing, unfold=True)) == 20
    assert remarks(differing[:8])[0] == "output b0: error 0.5"


def test_of_outputs_in_which_errors_go_unnoticed_one_is_named() -> None:
    said, more = remarks([OutputDifference(f"c{move}", 0.01, 0.005, 1.0, noise(move)) for move in (0.01, 0.03, 0.02)])
    assert said.startswith("output c0.03: rounding alone moves it by 3%")
    assert more == "2 more outputs have a similar remark; --all shows them"


def test_what_outputs_that_agree_would_hide_is_a_detail() -> None:
    assert [len(comparison_texts([CHAOTIC, DIFFERS], None, details=details)) for details in (False, True)] == [3, 3]
    blunt = OutputDifference("c", 0.01, 0.005, 1.0, noise(0.03))
    assert [len(comparison_texts([blunt], None, details=details)) for details in (False, True)] == [1, 2]


def test_what_is_not_known_is_null() -> None:
    found = comparison_to_json([OutputDifference("a", 1.0, 0.5)], None)
    assert found == {
        "equal": False, "verdict": "differ", "tolerance": 1e-3,
        "outputs": [{
            "name": "a", "verdict": "differ", "max_absolute_error": 1.0, "max_relative_error": 0.5,
            "error_by_rounding": None, "moved_by_rounding": None, "least_noticed_in_one_value": None,
            "least_noticed_in_all_values": None,
        }],
    }  # fmt: skip
    assert comparison_to_json(None, None) is None
