"""From answers to effects, classes and sentences: no Triton, no processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inspections import inspected

from gluonmap.cli.option_values import pair, value_of
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Stage, Value, same
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.model.verdict import Answer, Fault, Location, Program, Reason, Resources, Verdict
from gluonmap.probe import map_fold, screen
from gluonmap.probe.effects import classify
from gluonmap.probe.spelling import quoted
from gluonmap.runner.journal import key_of
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.spec.probe_file import ProbeFile

KERNEL = inspected("""
    def gemm(x, n, TILE: constexpr, DEAD: constexpr, READ: constexpr):
        static_assert(READ > 0)
        store(x + arange(0, TILE), n % TILE)
""")


def described(**domains: tuple[Value, ...]) -> Description:
    """The kernel with these knobs alone; the first value of each is its baseline."""
    overrides = Overrides(
        sets={"TILE": 64, "DEAD": 0, "READ": 1} | {n: d[0] for n, d in domains.items()},
        args={"x": "*fp16", "n": 4096},
        grid="(cdiv(n, GRID_TILE),)" if "GRID_TILE" in domains else "(1,)",
    )
    return describe(KERNEL, targets.find("gfx942"), ProbeFile(knobs=domains), overrides)


def test_only_knobs_that_nothing_reads_are_unread() -> None:
    knobs = described(TILE=(64, 128), DEAD=(0, 1), READ=(1, 2), num_warps=(4, 8))
    assert screen.unread_knobs(KERNEL, knobs) == ["DEAD"]
    by_grid = dataclasses.replace(knobs, grid="cdiv(n, DEAD + 1)")
    assert screen.unread_knobs(KERNEL, by_grid) == []


def passes(digest: str, code: str = "", descriptor: str = "") -> Verdict:
    program = Program(digest, code or digest, descriptor or digest)
    return Verdict(Outcome.PASS, Stage.COMPILE, 0, program=program, resources=Resources(256, 0))


CRASHED = Verdict(
    Outcome.CRASHED,
    Stage.COMPILE,
    -6,
    reason=Reason("SIGABRT", "LLVM ERROR: no", "front end", Location("gemm", "kernels/gemm.py", 2)),
)
LOST = Fault("exit status 0 without evidence", 0)


class Answers:
    """Answers to the moves of a description, made up: the baseline's program is "base"."""

    def __init__(self, description: Description, moves: Sequence[tuple[Config, Answer]]) -> None:
        self.by_key: Mapping[str, Answer] = {key_of(description.candidate({})): passes("base")} | {
            key_of(description.candidate(move)): answer for move, answer in moves
        }


def mapped(description: Description, *moves: tuple[Config, Answer], stable: bool | None = True) -> SpaceMap:
    identity = map_fold.MapIdentity("kernels/gemm.py", "3.9.0", (), "reports/gemm.gfx942.json")
    answers = Answers(description, moves).by_key
    confirmed = {} if stable is None else dict.fromkeys(answers, stable)
    return map_fold.fold(description, KERNEL, identity, answers, confirmed, lambda location: location.line + 10)


def effect(space: SpaceMap, knob: str, value: Value) -> Effect:
    return next(v.effect for v in space.knobs[knob].values if same(v.value, value))


# --- which candidates -------------------------------------------------------------------------------------------------


def test_one_knob_is_moved_at_a_time_and_the_baseline_is_not_asked_again() -> None:
    singles = screen.singles(described(TILE=(64, 32, 128), DEAD=(0, 1)))
    moved = [(name, asked.config["TILE"], asked.config["DEAD"]) for (name, _), asked in singles.items()]
    assert moved == [("TILE", 32, 0), ("TILE", 128, 0), ("DEAD", 64, 1)]


def test_true_is_another_value_than_1() -> None:
    assert len(screen.singles(described(DEAD=(1, True)))) == 1
    assert not same(1, True)
    assert not same(0, False)
    assert same(None, None)
    assert same("a", "a")


# --- effects ----------------------------------------------------------------------------------------------------------


def test_an_identical_program_is_inert_and_another_is_live() -> None:
    space = mapped(
        described(TILE=(64, 32), DEAD=(0, 1)), ({"TILE": 32}, passes("other")), ({"DEAD": 1}, passes("base"))
    )
    assert (effect(space, "TILE", 32), effect(space, "DEAD", 1)) == (Effect.LIVE, Effect.INERT)
    assert space.knobs["TILE"].knob_class is KnobClass.LIVE
    assert space.knobs["TILE"].why == "changes instructions"
    assert space.knobs["DEAD"].knob_class is KnobClass.INERT
    assert space.knobs["DEAD"].equivalent == ((0, 1),)


@pytest.mark.parametrize(
    ("code", "descriptor", "detail"),
    [
        ("other", "other", "instructions"),
        ("other", "base", "instructions"),
        ("base", "other", "descriptor only"),
        ("base", "base", "launch only"),
    ],
)
def test_a_live_value_says_what_it_changes(code: str, descriptor: str, detail: str) -> None:
    space = mapped(described(TILE=(64, 32)), ({"TILE": 32}, passes("other", code, descriptor)))
    changed = next(v for v in space.knobs["TILE"].values if v.value == 32)
    assert (changed.effect, changed.detail) == (Effect.LIVE, detail)


def test_an_identical_program_on_another_grid_is_live_on_the_host() -> None:
    space = mapped(described(GRID_TILE=(64, 128)))
    assert effect(space, "GRID_TILE", 128) is Effect.LIVE_HOST
    assert space.knobs["GRID_TILE"].knob_class is KnobClass.LIVE
    assert space.knobs["GRID_TILE"].equivalent == ()


def test_values_that_share_a_program_are_equivalent_away_from_the_baseline_too() -> None:
    space = mapped(
        described(DEAD=(0, 1, 2, 3)),
        ({"DEAD": 1}, passes("other")),
        ({"DEAD": 2}, passes("other")),
        ({"DEAD": 3}, passes("base")),
    )
    assert space.knobs["DEAD"].equivalent == ((0, 3), (1, 2))


def test_a_value_that_fails_carries_outcome_reason_line_and_status() -> None:
    space = mapped(described(TILE=(64, 32)), ({"TILE": 32}, CRASHED))
    failed = next(v for v in space.knobs["TILE"].values if v.value == 32)
    assert (failed.outcome, failed.effect, failed.kind, failed.exit_status) == (
        "CRASHED",
        Effect.ABORTING,
        "SIGABRT",
        -6,
    )
    assert (failed.reason, failed.line, failed.stage) == ("LLVM ERROR: no", 12, "front end")
    assert space.knobs["TILE"].knob_class is KnobClass.PINNED


def test_a_fault_is_unknown_and_never_evidence() -> None:
    space = mapped(described(TILE=(64, 32, 128)), ({"TILE": 32}, LOST), ({"TILE": 128}, passes("base")))
    lost = next(v for v in space.knobs["TILE"].values if v.value == 32)
    assert (lost.outcome, lost.effect, lost.reason) == ("unknown", Effect.UNKNOWN, "exit status 0 without evidence")
    assert space.knobs["TILE"].knob_class is KnobClass.UNKNOWN
    assert space.unanswered == 0


def test_what_was_not_asked_is_unknown_and_counted() -> None:
    space = mapped(described(TILE=(64, 32, 128)), ({"TILE": 32}, passes("other")))
    assert effect(space, "TILE", 128) is Effect.UNKNOWN
    assert space.unanswered == 1


def test_unstable_code_is_neither_inert_nor_live_nor_equivalent_but_its_failures_stand() -> None:
    space = mapped(
        described(TILE=(64, 32, 128, 256)),
        ({"TILE": 32}, passes("base")),
        ({"TILE": 128}, passes("other")),
        ({"TILE": 256}, CRASHED),
        stable=False,
    )
    effects = {v.value: v.effect for v in space.knobs["TILE"].values}
    assert effects == {64: Effect.BASELINE, 32: Effect.UNKNOWN, 128: Effect.UNKNOWN, 256: Effect.ABORTING}
    assert space.knobs["TILE"].equivalent == ()
    assert "unstable" in space.notes[0]


def test_a_failing_baseline_has_no_knobs_but_says_why_and_what_to_do() -> None:
    description = described(TILE=(64, 32))
    space = mapped(description, ({}, CRASHED))
    assert (space.outcome, space.kind, space.exit_status, space.line) == ("CRASHED", "SIGABRT", -6, 12)
    assert space.knobs == {}
    assert "--set" in space.next_step
    hung = Verdict(Outcome.HUNG, Stage.COMPILE, -9, reason=Reason("deadline", "no end within 5 s"))
    assert "--deadline" in mapped(description, ({}, hung)).next_step


def test_the_three_kinds_of_dead_knobs_differ_in_their_reasons() -> None:
    same = passes("base")
    space = mapped(
        described(DEAD=(0, 1), READ=(1, 2), kpack=(1, 2)),
        ({"DEAD": 1}, same),
        ({"READ": 2}, same),
        ({"kpack": 2}, same),
    )
    assert space.knobs["DEAD"].why == "declared, never read (line 10): identical program"
    assert space.knobs["READ"].why.startswith("read by the front end (line 11)")
    assert space.knobs["kpack"].why == "option ignored by the back end for these argument types: identical program"


# --- classes ----------------------------------------------------------------------------------------------------------


def moved(*effects: Effect) -> list[ValueMap]:
    return [ValueMap(i, "PASS", effect) for i, effect in enumerate(effects)]


FAILS, SAME, OTHER, HOST, OPEN = Effect.ABORTING, Effect.INERT, Effect.LIVE, Effect.LIVE_HOST, Effect.UNKNOWN


@pytest.mark.parametrize(
    ("effects", "knob_class"),
    [
        ([], KnobClass.UNKNOWN),
        ([OPEN], KnobClass.UNKNOWN),
        ([FAILS, FAILS], KnobClass.PINNED),
        ([FAILS, OPEN], KnobClass.BOUNDED),
        ([FAILS, SAME], KnobClass.BOUNDED),
        ([FAILS, OTHER], KnobClass.BOUNDED),
        ([FAILS, HOST, OPEN], KnobClass.BOUNDED),
        ([SAME, SAME], KnobClass.INERT),
        ([SAME, OPEN], KnobClass.UNKNOWN),
        ([SAME, OTHER], KnobClass.LIVE),
        ([OTHER, OPEN], KnobClass.LIVE),
        ([HOST], KnobClass.LIVE),
    ],
)
def test_the_class_of_a_knob_by_example(effects: list[Effect], knob_class: KnobClass) -> None:
    assert classify(moved(*effects)) is knob_class


@given(st.lists(st.sampled_from([FAILS, SAME, OTHER, HOST, OPEN]), max_size=8))
def test_a_class_claims_no_more_than_was_seen(effects: list[Effect]) -> None:
    found = classify(moved(*effects))
    seen = set(effects)
    match found:
        case KnobClass.PINNED:
            assert seen == {FAILS}
        case KnobClass.BOUNDED:
            assert FAILS in seen
            assert seen != {FAILS}
        case KnobClass.LIVE:
            assert seen & {OTHER, HOST}
            assert FAILS not in seen
        case KnobClass.INERT:
            assert seen == {SAME}
        case KnobClass.UNKNOWN:
            assert seen <= {SAME, OPEN}
            assert seen != {SAME}


@given(st.lists(st.sampled_from([FAILS, SAME, OTHER, HOST, OPEN]), max_size=8), st.randoms(use_true_random=False))
def test_a_class_does_not_depend_on_the_order_of_the_values(effects: list[Effect], random: Any) -> None:
    shuffled = effects.copy()
    random.shuffle(shuffled)
    assert classify(moved(*shuffled)) is classify(moved(*effects))


# --- values on a command line -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (64, "V=64"), (True, "V=True"), (None, "V=None"), (".cg", "V=.cg"), ("64", "'V='\\''64'\\'''"),
        ("", "'V='\\'''\\'''"), ("a b", "'V=a b'"), ("it's", "'V=it'\\''s'"), (1.5, "V=1.5"), (-1, "V=-1"),
        ("$HOME", "'V=$HOME'"),
    ],
)  # fmt: skip
def test_a_value_is_quoted_for_the_shell_where_it_must(value: Value, written: str) -> None:
    assert quoted("V", value) == written


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_a_quoted_value_comes_back_through_a_shell_as_itself(value: Value) -> None:
    if isinstance(value, str) and (value != value.strip() or "\0" in value):
        return  # --set strips what surrounds a value
    import shlex

    (word,) = shlex.split(quoted("V", value))
    name, text = pair(word, "--set")
    assert name == "V"
    assert same(value_of(text), value)


def test_a_value_whose_second_compile_gave_another_program_is_not_called_inert() -> None:
    description = described(TILE=(64, 32, 128))
    answers = Answers(description, [({"TILE": 32}, passes("base")), ({"TILE": 128}, passes("base"))]).by_key
    confirmed = dict.fromkeys(answers, True) | {key_of(description.candidate({"TILE": 32})): False}
    identity = map_fold.MapIdentity("kernels/gemm.py", "3.9.0", (), "reports/gemm.gfx942.json")
    space = map_fold.fold(description, KERNEL, identity, answers, confirmed, lambda location: location.line + 10)
    assert effect(space, "TILE", 32) is Effect.UNKNOWN
    assert effect(space, "TILE", 128) is Effect.INERT
