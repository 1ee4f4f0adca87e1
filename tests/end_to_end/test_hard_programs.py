"""Programs that were once partitioned wrongly, or refused, compute the same on several devices as on one."""

from __future__ import annotations

import pytest
from end_to_end.hard_programs import PROGRAMS
from end_to_end.numbers_compare import Verdict, compare_numbers


@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_give_what_one_device_gives(name: str) -> None:
    for seed in range(3):
        found = compare_numbers(PROGRAMS[name], seed)
        assert found.verdict is Verdict.EQUAL, found.details
