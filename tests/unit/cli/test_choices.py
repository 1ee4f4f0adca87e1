"""The choices of the command line are those of the library: the parser spells most out, to import little."""

from __future__ import annotations

import argparse
from enum import Enum

import pytest

from pyshardy.cli.arguments import make_parser
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.places import By
from pyshardy.propagation.options import StrategyOption, View
from pyshardy.report.page.render import PageFormat
from pyshardy.report.specs import Notation
from pyshardy.runtime.engine import Engine
from pyshardy.searching.autopartition.objective import Goal

ENUMS: dict[str, type[Enum]] = {
    "--by": By, "--collectives": CollectiveModel, "--engine": Engine, "--format": PageFormat, "--goal": Goal,
    "--notation": Notation, "--strategy": StrategyOption, "--view": View,
}  # fmt: skip
NOT_OFFERED = {View.HLO}
"""What dumps of HLO are read as, which nobody has to ask for."""


def wrong_choices(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """By command and option the choices that the library has and the option lacks, or the other way round."""
    commands = next(one for one in parser._actions if isinstance(one, argparse._SubParsersAction)).choices
    found = {}
    for command, one in commands.items():
        for action in one._actions:
            name = next((name for name in action.option_strings if name in ENUMS), None)
            if name is not None and action.choices is not None:
                known = {member.value for member in ENUMS[name] if member not in NOT_OFFERED}
                found[f"{command} {name}"] = sorted(known ^ set(action.choices))
    return found


def test_choices_are_those_of_the_library() -> None:
    found = wrong_choices(make_parser())
    assert {name.split()[1] for name in found} == ENUMS.keys()
    assert not {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("choices", [["time"], ["time", "memory", "speed"]])
def test_a_wrong_choice_is_noticed(choices: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_subparsers().add_parser("search").add_argument("--goal", choices=choices)
    assert wrong_choices(parser) != {"search --goal": []}
