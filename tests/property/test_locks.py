"""Laws of locks and of names that are folded."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from pyshardy.core.folding import fold_names, unfold
from pyshardy.errors import UsageError
from pyshardy.report.lock import LOCK_VERSION, Lock, LockedCollective, LockedTensor, folded, unfolded
from pyshardy.report.lock_files import parse_lock

NAMES = st.builds(
    "{}[{}].{}[{}]".format, st.sampled_from("ab"), st.integers(0, 30), st.sampled_from("xy"), st.integers(0, 5)
)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)


@given(st.lists(NAMES, unique=True))
def test_what_is_folded_is_unfolded(names: list[str]) -> None:
    found = [unfold(one.name, len(one.members)) for one in fold_names((name, None) for name in names)]
    assert None not in found
    assert sorted(name for some in found for name in some or ()) == sorted(names)


@given(
    st.dictionaries(NAMES | TEXTS, st.sampled_from(["P('x')", "replicated"])),
    st.lists(st.tuples(TEXTS, st.integers(1, 9))),
)
def test_a_lock_is_read_as_it_was_written(inputs: dict[str, str], sent: list[tuple[str, int]]) -> None:
    rows = [LockedTensor(name, "f32[8]", sharding) for name, sharding in inputs.items()]
    collectives = [LockedCollective("all_reduce", "x", where, "sum", "f32[8]", count, 8) for where, count in sent]
    lock = Lock(LOCK_VERSION, "main", "1", "1", inputs=folded(rows), collectives=folded(collectives))
    assert parse_lock(lock.text()) == lock
    assert sorted(unfolded(lock.inputs), key=str) == sorted(rows, key=str)
    assert lock == Lock(
        LOCK_VERSION, "main", "1", "1", inputs=folded(rows[::-1]), collectives=folded(collectives[::-1])
    )


WHOLE = Lock(
    version=LOCK_VERSION,
    program="main",
    pyshardy="1",
    jaxlib="1",
    inputs=folded(LockedTensor(f"w[{layer}]", "f32[8]", "P('x')") for layer in range(4)),
    collectives=(LockedCollective("all_reduce", "x", "loss", "sum of dot_general", "f32[8]", 1, 8),),
).text()


@given(st.integers(0, len(WHOLE)), st.integers(0, 6), TEXTS)
def test_a_text_that_is_changed_is_a_lock_or_refused(at: int, most: int, text: str) -> None:
    with suppress(UsageError):
        assert isinstance(parse_lock(WHOLE[:at] + text + WHOLE[at + most :]), Lock)
