"""`pyshardy`: propagates, shows, partitions and runs programs from the command line.

pyshardy run example --layers 4
pyshardy propagate model.mlir -o sharded.mlir
pyshardy show model.mlir
pyshardy explain model.mlir "params['w2']"
pyshardy diff before.mlir after.mlir
pyshardy partition model.mlir -o per_device.mlir
pyshardy cost model.mlir --hardware v5p
pyshardy confirm model.mlir --compiler tpu:v5e:2x4
pyshardy lock model.mlir -o shardings.lock
pyshardy check model.mlir shardings.lock
pyshardy doctor model.mlir --hardware h100
pyshardy report model.mlir -o report.html
pyshardy search model.mlir --mesh data=8,model=4 --hardware h100
pyshardy watch train.py --steps 3
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from pyshardy.cli.arguments import (
    EXAMPLE,
    SIZES,
    make_parser,
    partition_options,
    propagate_options,
    refuse_for_example,
    refuse_unknown,
    table_options,
)
from pyshardy.cli.diff_command import take_other
from pyshardy.cli.files import OUT_OF_MEMORY, naming, write_result, writing_to_standard_output
from pyshardy.cli.printing import count_lines, print_json, print_tables, print_text, program, rows_beside
from pyshardy.errors import ShardyError, UsageError
from pyshardy.source.places import user_code_of

if TYPE_CHECKING:
    from pyshardy.ir.module import Module
    from pyshardy.results.propagation import Propagation


_LINES_AROUND_ROWS = 9
"""The lines of a table of inputs besides its rows, one more collective, the command, and the next prompt."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; return the exit status.

    0 for success, 1 for a failure, 2 for a wrong command line, 3 for a comparison without a verdict.
    """
    return writing_to_standard_output(lambda: _main(argv))


def _main(argv: Sequence[str] | None) -> int:
    try:
        arguments, rest = make_parser().parse_known_args(argv)
        if arguments.command != "watch":  # whose script looks for its own chips
            # before jax is imported, which else looks for the chips of all plugins
            os.environ.setdefault("JAX_PLATFORMS", "cpu")
        if arguments.command in ("diff", "check"):
            rest = take_other(arguments, rest)
        if rest:
            refuse_unknown(arguments, rest)
        if getattr(arguments, "source", None) == EXAMPLE:
            refuse_for_example(arguments)
        user_code = user_code_of(getattr(arguments, "user_code", ()), getattr(arguments, "library", ()))
        with user_code, _dumping_to(getattr(arguments, "dump_to", None)):
            return _COMMANDS[arguments.command](arguments, rest)
    except ShardyError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except MemoryError:
        print(f"error: {OUT_OF_MEMORY}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _dumping_to(directory: str | None) -> AbstractContextManager[None]:
    if directory is None:
        return nullcontext()
    from pyshardy.results.dumps import dumping_to

    return dumping_to(directory)


def _propagate(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    result = _load_and_propagate(arguments, rest)
    result.module.verify()
    summary = result.summary  # whatever may fail comes before anything is written
    write_result(result.module, arguments, to_standard_output=not arguments.json)
    if arguments.json:
        print_json(summary.to_json(arguments.times))
    _print_warnings(summary.warnings)
    return 0


def _partition(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.api.partition import partition
    from pyshardy.cli.progress import stage

    module = _load(arguments, rest)
    with stage("partitioning"), naming(arguments.source):
        result = partition(module, partition_options(arguments), propagate_options=propagate_options(arguments))
        data = result.to_json(arguments.times)  # whatever may fail comes before anything is written
    write_result(result.module, arguments, to_standard_output=False)
    if arguments.json:
        print_json(data)
    elif arguments.output != "-":
        print_tables(result.tables(table_options(arguments)))
        return 0
    _print_warnings(result.warnings)
    return 0


def _cost(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.cost_command import costs, write_trace
    from pyshardy.cli.progress import stage

    mesh, arguments.mesh = arguments.mesh, None  # here it resizes the program's own mesh
    module = _load(arguments, rest)
    with stage("estimating"), naming(arguments.source):
        result = costs(module, mesh, arguments, partition_options(arguments), propagate_options(arguments))
    rows = () if arguments.by is None else result.by(arguments.by)
    if arguments.trace is not None:
        write_trace(result, arguments.trace)
    if arguments.json:
        by = {} if arguments.by is None else {f"by_{arguments.by}": [row.to_json() for row in rows]}
        print_json(result.to_json() | by)
    else:
        print_tables(result.tables())
    if rows and not arguments.json:
        from pyshardy.costing.places import By
        from pyshardy.report.cost import place_tables

        print()
        print_tables(place_tables(By(arguments.by), rows))
    if not arguments.json:
        _print_next(arguments, result.partition.device_count)
    _print_warnings(result.warnings)
    return 0 if result.fits or result.estimate.is_close else 1


def _confirm(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.confirm_command import confirm

    found = confirm(_load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.json:
        print_json(found.to_json())
    else:
        print_tables(found.tables())
    return 1 if found.fits is False else 0


def _lock(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.lock_command import locks

    found, warnings = locks(lambda: _load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.json:
        print_json(found.to_json())
    elif arguments.output in (None, "-"):
        sys.stdout.buffer.write(found.text().encode())
    _print_warnings(warnings)
    return 0


def _check(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.check_command import checks

    found = checks(lambda: _load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.json:
        print_json(found.to_json())
    else:
        print_tables(found.tables(arguments.all))
    return 0 if found else 1


def _doctor(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.doctor_command import diagnose
    from pyshardy.core.files import write_whole

    found = diagnose(_load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.patch is not None:
        write_whole(arguments.patch, found.patch.encode())
        without = [str(number) for number, one in enumerate(found.findings, 1) if not one.patch]
        if without:
            numbers = f"finding{'s' * (len(without) > 1)} {', '.join(without)}"
            print(f"not in {arguments.patch}: {numbers}", file=sys.stderr)
    if arguments.json:
        print_json(found.to_json())
    else:
        print_tables(found.tables())
    return 1 if found.findings else 0


def _search(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.search_command import finds

    mesh = arguments.mesh
    if not arguments.shard:
        arguments.mesh = None  # here it is for the whole program, not for tilings in its text
    module = _load(arguments, rest)
    with naming(arguments.source):
        plan = finds(module, mesh, arguments)
    if arguments.json:
        print_json(plan.to_json())
    else:
        print_tables(plan.tables())
    return 0 if plan.fits else 1


def _show(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.compare:
        return _compare(arguments, rest)
    from pyshardy.cli.progress import stage

    result = _load_and_propagate(arguments, rest)
    if arguments.values is not None:
        return _show_values(result, arguments)
    with stage("finding out where shardings come from"), naming(arguments.source):
        summary = result.summary_with_origins
    if arguments.json:
        print_json(summary.to_json(arguments.times))
    else:
        from pyshardy.report.tables import summary_tables

        print_tables(summary_tables(summary, table_options(arguments)))
        _print_next(arguments, result.device_count)
    return 0


def _print_next(arguments: argparse.Namespace, devices: int) -> None:
    """Say which command finds what costs most."""
    if devices > 1:
        print(f"\nnext: `pyshardy doctor` instead of `{arguments.command}` finds what costs most, with a cure")


def _show_values(result: Propagation, arguments: argparse.Namespace) -> int:
    from pyshardy.cli.progress import stage

    with stage("finding out where shardings come from"), naming(arguments.source):
        values = result.values[arguments.values]
    if arguments.json:
        print_json(values.to_json())
    else:
        print_tables(values.tables(table_options(arguments)))
    return 0


def _explain(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.explain_command import explain

    data, text = explain(_load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.json:
        print_json(data)
    else:
        print(text)
    return 0


def _report(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.report_command import report

    module = _load(arguments, rest)
    other = None
    if arguments.compare is not None:
        second = argparse.Namespace(**{**vars(arguments), "source": arguments.compare})
        other = _load(second, rest)
    said = report(module, other, arguments, propagate_options(arguments), partition_options(arguments))
    sys.stdout.write(said)
    return 0


def _diff(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    from pyshardy.cli.diff_command import exit_status_of, find_difference

    found = find_difference(lambda: _load(arguments, rest), arguments, propagate_options(arguments))
    if arguments.json:
        print_json(found.to_json())
    else:
        print_tables(found.tables(table_options(arguments)))
    return exit_status_of(arguments, found)


def _compare(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    """Show where the shardings differ from XLA's; the exit status is 1 if any do."""
    from pyshardy.frontend.from_dump import is_dump
    from pyshardy.results.decided import compare, dump_shardings

    if arguments.source == EXAMPLE or not is_dump(arguments.source):
        got = "the example" if arguments.source == EXAMPLE else arguments.source
        raise UsageError("comparing with a dump", got=got, needed="a directory that XLA dumped to")
    decided = dump_shardings(arguments.source, arguments.module, arguments.isolate)
    found = compare(_load_and_propagate(arguments, rest).module, decided)
    if arguments.json:
        print_json(found.to_json())
    else:
        print(found)
    return 1 if found.differences else 0


def _run(arguments: argparse.Namespace, rest: Sequence[str]) -> int:
    if arguments.source == EXAMPLE and arguments.inputs:
        raise UsageError("reading the command line", got="--inputs for the example", needed="--inputs only for a file")
    if arguments.source == EXAMPLE and arguments.shard:
        raise UsageError(
            "reading the command line",
            got="--shard for the example",
            needed="a file; for the example, only show and partition take --shard",
        )
    from pyshardy.cli import run_command
    from pyshardy.cli.verdict import comparison_texts, exit_status, next_lines

    execute = run_command.run_example if arguments.source == EXAMPLE else run_command.run_file
    found = execute(arguments, rest, propagate_options(arguments), partition_options(arguments))
    if arguments.json:
        print_json(run_command.to_json(found, arguments.tolerance, arguments.times))
    else:
        command = shlex.join([program(), "show", arguments.source, *rest])
        options = table_options(arguments)
        said = comparison_texts(found.differences, arguments.tolerance, arguments.all, arguments.details)
        more = next_lines(rest) if arguments.source == EXAMPLE else []
        head = run_command.tables(found, command, replace(options, most_rows=0))
        rows = rows_beside(count_lines(head, said) + len(more) + _LINES_AROUND_ROWS)
        print_tables(run_command.tables(found, command, replace(options, most_rows=rows)))
        print_text(*said)
        print("\n".join(more), end="\n" * bool(more))
    return exit_status(found.differences, arguments.tolerance)


def _load(arguments: argparse.Namespace, rest: Sequence[str]) -> Module:
    """The program of a command: the built-in one, with its sizes in `rest`, or that in a file."""
    if arguments.source == EXAMPLE:
        from pyshardy.cli.example import load_example
        from pyshardy.cli.files import with_given_shardings

        return with_given_shardings(load_example(rest).module, arguments)
    from pyshardy.cli.files import load_source
    from pyshardy.cli.progress import stage

    with stage(f"reading {arguments.source}"):
        return load_source(arguments)


def _load_and_propagate(arguments: argparse.Namespace, rest: Sequence[str]) -> Propagation:
    from pyshardy.api.propagate import propagate
    from pyshardy.cli.progress import stage

    module = _load(arguments, rest)
    with stage("propagating"), naming(arguments.source):
        return propagate(module, propagate_options(arguments))


def _print_warnings(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def _watch(arguments: argparse.Namespace, _: Sequence[str]) -> int:
    from pyshardy.cli.watch_command import watch

    return watch(arguments)


def _completion(arguments: argparse.Namespace, _: Sequence[str]) -> int:
    from pyshardy.cli.completion import script

    sys.stdout.write(script(arguments.shell, arguments.commands, SIZES))
    return 0


_COMMANDS = {
    "propagate": _propagate,
    "show": _show,
    "explain": _explain,
    "diff": _diff,
    "partition": _partition,
    "cost": _cost,
    "confirm": _confirm,
    "lock": _lock,
    "check": _check,
    "doctor": _doctor,
    "report": _report,
    "search": _search,
    "run": _run,
    "watch": _watch,
    "completion": _completion,
}


if __name__ == "__main__":
    sys.exit(main())
