"""Which tests are slow, that is, take longer than half a second, or share a set-up that does.

`make test-fast` omits them. `tests/test_fast.py` checks that the lists fit the tests, and that every room has fast ones.
"""

from __future__ import annotations

import re
from pathlib import Path

SLOW = (
    # Comparisons with the reference, with XLA and with one device; other programs; a browser; searches; fuzzing
    "cost/test_against_xla.py",
    "cost/test_compiled.py::test_a_step_beside_its_compiler",
    "cost/test_cores.py::test_peak_memory_is_near_what_xla_needs",
    "cost/test_one_gpu.py",
    "cost/test_programs.py",
    "cost/test_published.py",
    "cost/test_speed.py",
    "checkup",
    "compilers",
    "differential",
    "end_to_end",
    "fuzz",
    "packages",
    "page",
    "search",
    # Properties that start a process per example, or compile
    "public_reports",
    "property/test_axes.py::test_a_reference_makes_as_many_shards_as_it_is_long",
    "property/test_edits.py::test_an_edit_gives_what_annotating_and_propagating_gives",
    "property/test_edits.py::test_running_again_gives_what_a_run_over_everything_gives",
    "property/test_plans.py",
    "property/test_notation.py::test_meshes",
    "property/test_programs.py::test_the_order_of_hashes_does_not_matter",
    "property/test_promises.py::test_a_pass_that_does_nothing_breaks_its_promise",
    "property/test_promises.py::test_promises_are_kept",
    "property/test_propagation.py::test_the_order_of_hashes_does_not_matter",
    # The package as a whole
    "test_benchmarks.py",
    "test_citations.py::test_every_citation_leads_to_a_heading",
    "test_compiled.py",
    "test_contributing.py::test_another_trait_makes_a_difference",
    "test_contributing.py::test_one_line_takes_an_op_from_its_rule_to_one_device",
    "test_contributing.py::test_only_direct_imports_are_drawn",
    "test_contributing.py::test_the_drawing_of_rooms_is_that_of_the_imports",
    "test_contributing.py::test_what_makes_it_local_is_asked",
    "test_contributing.py::test_without_the_line_the_op_is_unknown",
    "test_docs.py",
    "test_filecheck.py::test_a_wrong_expectation_fails",
    "test_filecheck.py::test_every_refusal_of_a_pass_is_expected_somewhere",
    "test_filecheck.py::test_filecheck",
    "test_notebooks.py::test_a_notebook_shows_what_it_is_committed_with",
    "test_ops.py::test_no_pass_keeps_a_set_that_could_be_a_trait",
    "test_process_state.py::test_no_cache_keeps_a_module_alive",
    "test_process_state.py::test_threads_share_a_module",
    "test_process_state.py::test_what_changes_is_on_the_page",
    "test_public_api.py::test_propagate_stays_the_function_after_its_parts_are_imported",
    "test_public_api.py::test_the_driver_never_imports_jax",
    # Rooms: what starts processes, compiles many programs, collects garbage of the whole process, or measures time
    "unit/searching/autopartition/test_explore.py::test_a_partitioner_can_be_given_to_one_search",
    "unit/searching/autopartition/test_explore.py::test_search_is_no_worse_than_its_seeds_and_depends_on_nothing_but_them",
    "unit/searching/autopartition/test_pricing.py::test_tactics_are_ranked_as_the_careful_estimate_ranks_them",
    "unit/searching/autopartition/test_tactics.py::test_no_two_tactics_have_one_name",
    "unit/ir/bytecode/test_numbers.py::test_numbers_behind_each_other_are_read_as_they_were_written",
    "unit/compilers/test_ask.py",
    "unit/compilers/test_process.py::test_a_hang_ends_with_all_that_it_started",
    "unit/cli/test_check_command.py::test_options_may_stand_anywhere",
    "unit/cli/test_check_command.py::test_the_compiler_of_the_lock_is_asked",
    "unit/cli/test_check_command.py::test_the_job_on_the_page",
    "unit/cli/test_confirm_command.py::test_a_few_layers_for_all",
    "unit/cli/test_confirm_command.py::test_the_tables_and_the_json",
    "unit/cli/test_dump_to.py::test_every_command_dumps[run]",
    "unit/cli/test_dumps.py::test_hlo_runs_on_virtual_devices",
    "unit/cli/test_hostile.py::test_one_error_each[names]",
    "unit/cli/test_hostile.py::test_one_error_each[numbers]",
    "unit/cli/test_hostile_options.py",
    "unit/cli/test_isolate.py",
    "unit/cli/test_lock_command.py::test_the_example_in_any_size",
    "unit/cli/test_main.py",
    "unit/cli/test_opt_process.py::test_a_pass_that_needs_numpy_has_it",
    "unit/cli/test_opt_process.py::test_a_process_of_its_own_does_what_a_call_does",
    "unit/cli/test_opt_process.py::test_all_that_a_process_prints_arrives",
    "unit/cli/test_opt_process.py::test_as_a_program",
    "unit/cli/test_opt_process.py::test_passes_run_without_jax_and_without_tables",
    "unit/cli/test_partition_command.py::test_every_engine_agrees_with_one_device[interpreter]",
    "unit/cli/test_partition_command.py::test_the_number_of_devices",
    "unit/cli/test_refusals.py",
    "unit/cli/test_report_command.py::test_two_programs_and_a_chip",
    "unit/cli/test_run_command.py",
    "unit/cli/test_search_command.py::test_a_plan_is_printed_and_saved",
    "unit/cli/test_search_command.py::test_constraints_are_written_as_a_patch",
    "unit/cli/test_shard.py::test_options_of_files_are_for_the_second_program",
    "unit/cli/test_source_lines.py::test_the_example_has_lines_of_its_own",
    "unit/cli/test_streams.py",
    "unit/core/test_intern.py::test_a_value_keeps_its_parts_and_nothing_keeps_the_value",
    "unit/core/test_intern.py::test_pickles_outlive_the_values",
    "unit/core/test_intern.py::test_values_are_freed",
    "unit/costing/test_hardware.py::test_a_table_with_a_wrong_value_is_refused_or_works[h100]",
    "unit/results/test_explained.py::test_every_value_of_the_result_is_one_of_the_traced_run",
    "unit/results/test_explained.py::test_explanations_show_the_shardings_of_the_result",
    "unit/frontend/test_from_jax.py::test_keys_have_the_dimensions_that_jax_sees",
    "unit/frontend/test_from_jax.py::test_programs_run_with_the_shardings_found",
    "unit/frontend/test_isolated.py",
    "unit/frontend/test_jax_calls.py::test_a_result_takes_and_returns_the_trees_of_the_function",
    "unit/frontend/test_jax_calls.py::test_static_arguments_may_be_left_out",
    "unit/frontend/test_jax_lower.py::test_the_module_is_that_of_real_devices",
    "unit/frontend/test_jax_ops.py::test_gradients_are_annotated_too",
    "unit/report/test_origins.py::test_a_real_program_names_arguments_for_whatever_is_inferred",
    "unit/ir/test_dialects.py",
    "unit/ir/test_emit.py::test_numbers_of_any_length[17000]",
    "unit/ir/test_emit.py::test_numbers_of_any_length[8200]",
    "unit/ir/test_pause_gc.py",
    "unit/ir/test_use_lists.py",
    "unit/passes/partitioning/test_exchange_shards.py::test_neither_collectives_nor_bytes_grow[concatenate]",
    "unit/passes/partitioning/test_exchange_shards.py::test_neither_collectives_nor_bytes_grow[merge]",
    "unit/searching/planning/test_candidates.py::test_prices_are_those_of_partitioned_programs",
    "unit/searching/planning/test_nearest.py::test_a_plan_of_experts_is_its_own_nearest",
    "unit/searching/planning/test_nearest.py::test_a_plan_says_what_is_nearest_and_keeps_it_in_a_file",
    "unit/searching/planning/test_nearest.py::test_the_plan_is_the_first_that_fits_in_time_against_memory",
    "unit/searching/planning/test_nearest.py::test_what_is_changed_is_said_for_inputs_and_values",
    "unit/searching/planning/test_reasons.py::test_a_plan_that_is_made_worse_has_a_better_neighbour",
    "unit/searching/planning/test_reasons.py::test_collectives_are_those_of_the_program_less_those_with_whole_arrays",
    "unit/searching/planning/test_reasons.py::test_every_rule_has_a_reason_and_none_names_a_better_plan",
    "unit/searching/planning/test_reasons.py::test_without_time_reasons_are_quick",
    "unit/searching/planning/test_reasons.py::test_the_cost_of_the_other_sharding_is_that_of_the_program_with_it",
    "unit/searching/planning/test_candidates.py::test_prices_of_layers_are_those_of_the_whole_program",
    "unit/searching/planning/test_compiled.py::test_no_plan_is_worse_than_the_given_program_as_the_compiler_makes_it",
    "unit/searching/planning/test_compiled.py::test_the_figures_are_those_of_the_compiler_s_program",
    "unit/report/page/test_describe.py::test_equal_programs_give_equal_bytes",
    "unit/reshard/test_moves.py::test_the_number_of_rounds_does_not_grow[4096]",
    "unit/results/test_one_read.py::test_from_loading_to_running_is_one_read_and_one_fixed_point[interpreter]",
    "unit/results/test_plan.py::test_what_is_loaded_can_be_shown",
    "unit/runtime/test_barriers.py::test_a_slice_of_a_slice_out_of_bounds",
    "unit/runtime/test_barriers.py::test_an_element_of_a_product_of_a_slice",
    "unit/runtime/test_callbacks.py::test_ordered_callbacks_run_in_order",
    "unit/runtime/test_distributed.py::test_a_process_that_comes_and_leaves_is_waited_for",
    "unit/runtime/test_distributed.py::test_process_0_that_hangs_up_is_dialled_again_until_time_is_up",
    "unit/runtime/test_execute.py",
    "unit/runtime/test_hlo.py::test_what_xla_compiles_runs_as_often_as_the_program_says",
    "unit/runtime/test_inspections.py::test_a_program_of_another_process_is_only_warned_about",
    "unit/runtime/test_inspections.py::test_callbacks_get_what_jax_gives",
    "unit/runtime/test_interpreter.py::test_numbers_of_all_types_move",
    "unit/runtime/test_nans.py::test_what_is_not_a_number_is_kept",
    "unit/runtime/test_peers.py::test_a_process_that_falls_silent_is_lost",
    "unit/runtime/test_peers.py::test_a_service_that_falls_silent_is_process_0",
    "unit/runtime/test_peers.py::test_what_takes_long_is_waited_for",
    "unit/runtime/test_rounding.py::test_results_move_where_no_input_does",
    "unit/runtime/test_rounding.py::test_what_is_rounded_moves",
    "unit/runtime/test_user_partitioners.py::test_collectives_functions_and_several_ops",
    "unit/api/test_confirm.py::test_a_result_knows_its_compiler",
    "unit/api/test_confirm.py::test_a_shortened_program_tells_of_the_whole",
    "unit/api/test_confirm.py::test_memory_and_collectives_of_the_compiled_program",
    "unit/results/test_cost.py::test_an_estimate_takes_little_more_time_than_the_partition_that_it_prices",
    "unit/test_examples.py::test_a_step_of_gradient_descent_makes_the_loss_smaller",
    "unit/test_front_door.py::test_xla_prints_no_line_per_device_unless_the_user_asks_for_it",
    "unit/test_hostile_arguments.py::test_wrong_arguments[Module.parse]",
    "unit/test_hostile_arguments.py::test_wrong_arguments[cost]",
    "unit/test_hostile_arguments.py::test_wrong_arguments[diff]",
    "unit/test_hostile_arguments.py::test_wrong_arguments[load_text]",
    "unit/test_hostile_arguments.py::test_wrong_arguments[report]",
    "unit/api/test_jit.py::test_keys",
    "unit/api/test_jit.py::test_what_jax_takes_as_no_argument_is_refused_as_by_jax",
    "unit/test_large_meshes.py::test_as_many_as_there_may_be_are_listed",
    "unit/api/test_lock.py::test_a_new_replication",
    "unit/api/test_lock.py::test_replications_are_locked",
    "unit/test_partitioning.py::test_importing_the_package_does_not_import_jax",
    "unit/test_planted_changes.py::test_a_changed_input_spec",
    "unit/test_planted_changes.py::test_a_new_axis",
    "unit/test_planted_changes.py::test_a_program_without_names_and_lines",
    "unit/test_planted_changes.py::test_an_additional_output",
    "unit/test_planted_changes.py::test_an_op_that_reshards",
    "unit/test_planted_changes.py::test_every_line_is_in_a_width",
    "unit/test_programs.py",
    "unit/watching/test_notebook.py::test_a_cell_shows_the_programs_that_are_compiled_in_it",
    "unit/watching/test_parts.py::test_a_program_whose_compiler_refuses_is_shown_as_for_cpus",
    "unit/watching/test_parts.py::test_a_script_with_another_jax_is_named",
    "unit/watching/test_parts.py::test_a_worker_that_dies_or_hangs_is_replaced",
    "unit/watching/test_watch.py",
    "unit/test_pytest_plugin.py::test_the_option_of_pytest",
)
"""Folders, files, tests, and tests with one parameter."""

SAMPLES = (
    "cost/test_programs.py::test_what_is_alive_at_the_peak_is_the_peak[manual_collectives]",
    "differential/test_programs.py::test_program[mlp_training-sdy-propagation-pipeline]",
    "end_to_end/test_partition.py::test_a_program_computes_the_same_on_eight_devices[mlp_training]",
    "property/test_promises.py::test_promises_are_kept[sdy-import-pipeline,sdy-populate-op-shar1]",
    "unit/cli/test_refusals.py::test_a_module_that_makes_no_sense_is_refused_with_one_message[text-show]",
    "unit/frontend/test_from_jax.py::test_programs_run_with_the_shardings_found[device_order]",
    "unit/frontend/test_jax_lower.py::test_the_module_is_that_of_real_devices[reshapes]",
    "unit/results/test_explained.py::test_every_value_of_the_result_is_one_of_the_traced_run[newton]",
    "unit/runtime/test_barriers.py::test_a_slice_of_a_slice_out_of_bounds[8-5-<lambda>2]",
    "unit/runtime/test_inspections.py::test_callbacks_get_what_jax_gives[plain-by_xla]",
    "unit/searching/planning/test_candidates.py::test_prices_are_those_of_partitioned_programs[uneven]",
    "unit/searching/planning/test_candidates.py::test_prices_of_layers_are_those_of_the_whole_program[2-replicated]",
)
"""The tests among them that run even so: one of each kind that is worth it."""


def is_slow(name: str) -> bool:
    """Whether a test is slow.

    Args:
        name: Its name as pytest writes it, without `tests/`.

    >>> is_slow("differential/test_rules.py::test_rule[add]"), is_slow("unit/core/test_axes.py::test_order")
    (True, False)
    """
    return name not in SAMPLES and not _SLOW.isdisjoint(_wholes(name))


def has_no_fast_test(path: Path, tests: Path) -> bool:
    """Whether all tests of a file or folder are slow as it is listed, so that it need not be imported.

    >>> has_no_fast_test(Path("tests/page"), Path("tests")), has_no_fast_test(Path("tests/differential"), Path("tests"))
    (True, False)
    """
    if not path.is_relative_to(tests):
        return False
    name = path.relative_to(tests).as_posix()
    return not _SLOW.isdisjoint(_wholes(name)) and not any(name in _wholes(sample) for sample in SAMPLES)


_SLOW = frozenset(SLOW)
_CUT = re.compile(r"/|::|\[")


def _wholes(name: str) -> list[str]:
    """A name, and the test, file and folders that it is within."""
    return [name[: cut.start()] for cut in _CUT.finditer(name)] + [name]
