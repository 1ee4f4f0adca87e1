"""Which tests run on a sample of their cases, so that `make test` takes minutes; `make campaign` runs all of them.

`tests/conftest.py` leaves the other cases out, unless the environment has `PYSHARDY_ALL_TESTS`, or the command line names
a test (`pytest tests/file.py::test`). Some tests ask for that variable themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

ALL_TESTS = "PYSHARDY_ALL_TESTS"
ONE_OF = {
    "cost/test_programs.py::test_what_is_alive_at_the_peak_is_the_peak": 4,
    "differential/test_against_xla.py::test_no_more_is_sent_than_by_xla": 3,
    "differential/test_chains.py::test_laws_hold_for_jax_programs": 3,
    "differential/test_edits_corpus.py::test_edits_of_a_program": 4,
    "differential/test_explained_corpus.py::test_every_collective_has_a_cause": 3,
    "differential/test_explained_corpus.py::test_every_value_has_a_story": 3,
    "differential/test_random_programs.py::test_random_programs": 2,
    "differential/test_round_trips.py::test_filecheck_inputs": 3,
    "differential/test_round_trips.py::test_program": 3,
    "differential/test_writing.py::test_program": 4,
    "end_to_end/test_deep_programs.py::test_a_deep_program_raises_no_false_alarm": 5,
    "end_to_end/test_deep_programs.py::test_an_error_of_a_percent_in_any_output_is_noticed": 16,
    "end_to_end/test_deep_programs.py::test_in_a_narrow_type_an_error_of_all_of_a_large_output_is_noticed": 4,
    "end_to_end/test_deep_programs.py::test_in_f32_nothing_is_left_in_doubt": 5,
    "end_to_end/test_hard_programs.py::test_devices_give_what_one_device_gives": 5,
    "end_to_end/test_locks.py::test_a_lock_that_is_read_again_is_that_of_the_program": 4,
    "end_to_end/test_locks.py::test_without_an_annotation_what_differs_has_a_reason": 4,
    "end_to_end/test_partition.py::test_a_program_computes_the_same_on_eight_devices": 7,
    "end_to_end/test_partition.py::test_options_do_not_change_the_numbers": 3,
    "end_to_end/test_partition.py::test_the_transformer_computes_the_same_on_eight_devices": 2,
    "end_to_end/test_processes.py::test_a_process_that_dies_ends_the_others_run": 2,
    "end_to_end/test_processes.py::test_a_process_that_hangs_is_an_error_in_the_others_in_time": 4,
    "end_to_end/test_run.py::test_the_transformer_computes_the_same_on_eight_devices": 2,
    "end_to_end/test_windows.py::test_layers_and_their_gradients": 6,
    "fuzz/test_fuzz.py::test_a_signal_over_bytecode_is_the_readers_if_it_alone_ends": 2,
    "page/test_browser.py::test_nothing_freezes": 2,
    "search/test_constraints.py::test_a_constraint_of_a_module_is_that_of_its_line": 2,
    "search/test_opponents.py::test_ours_is_the_best_there_is": 4,
    "search/test_prices.py::test_the_price_inside_of_the_search_is_that_of_cost": 3,
    "search/test_proof.py::test_no_plan_of_people_or_chance_is_below_the_bound": 3,
    "search/test_proof.py::test_no_sharding_of_a_tiny_program_is_below_the_bound": 3,
    "search/test_search.py::test_no_worse_than_people": 4,
    "search/test_truth.py::test_a_plan_is_what_xla_makes_of_it": 4,
    "test_notebooks.py::test_a_notebook_shows_what_it_is_committed_with": 2,
    "unit/searching/autopartition/test_pricing.py::test_tactics_are_ranked_as_the_careful_estimate_ranks_them": 3,
    "unit/cli/test_run_command.py::test_the_example_fits_a_screen": 2,
    "unit/results/test_explained.py::test_every_value_of_the_result_is_one_of_the_traced_run": 3,
    "unit/frontend/test_jax_lower.py::test_the_module_is_that_of_real_devices": 3,
    "unit/ir/test_use_lists.py::test_read_again": 3,
    "unit/ir/test_use_lists.py::test_same_as_mlir": 3,
    "unit/test_programs.py::test_transformer_learns": 2,
}
"""The tests, and how many cases there are for each that runs."""


def left_out(names: Iterable[str], kept: Iterable[str] = ()) -> set[str]:
    """Those of the names of tests that do not run: of each test in `ONE_OF` all but the first of every so many cases.

    Args:
        names: As pytest writes them, without `tests/`.
        kept: Names that run anyway, such as the samples of `make test-fast`.

    >>> sorted(left_out(f"test_notebooks.py::test_a_notebook_shows_what_it_is_committed_with[{n}]" for n in "abc"))
    ['test_notebooks.py::test_a_notebook_shows_what_it_is_committed_with[b]']
    """
    seen: Counter[str] = Counter()
    found = set()
    for name in names:
        test = name.partition("[")[0]
        if test in ONE_OF:
            if seen[test] % ONE_OF[test] and name not in kept:
                found.add(name)
            seen[test] += 1
    return found
