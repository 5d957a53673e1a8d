"""The learner against oracles that know the answer: no Triton, no subprocess."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gluonmap.acquire import Answer, Learned, Question, Session, learn, start
from gluonmap.acquire.certificate import error_bound, stratum_words
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.joint_map import Standing, StratumCertificate
from gluonmap.model.outcomes import Outcome
from gluonmap.model.relations import AnyOf, Compare, KnobTerm, Member, Number, Op, Product, Relation, Written
from gluonmap.model.verdict import Location
from gluonmap.probe.recorded_table import learn_table, make_table, read_table

TILES = (16, 32, 64, 128)
GEMM: dict[str, Sequence[Value]] = {
    "BLOCK_M": TILES, "BLOCK_N": TILES, "num_warps": (1, 2, 4, 8), "NUM_KSPLIT": (1, 2, 4), "GROUP_SIZE_M": (1, 4, 8),
}  # fmt: skip
BASELINE: Config = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "NUM_KSPLIT": 1, "GROUP_SIZE_M": 4}
RULES = ("BLOCK_N * num_warps <= 512", "NUM_KSPLIT == 1 or GROUP_SIZE_M == 1", "BLOCK_M >= 16 * num_warps")


class HiddenConstraints:
    """An oracle that knows the answers and records the questions."""

    def __init__(self, *rules: str | Relation, digest: Callable[[Config], str] | None = None) -> None:
        self.rules = [Written(rule) if isinstance(rule, str) else rule for rule in rules]
        self.digest = digest or (lambda config: json.dumps(config))
        self.asked: list[Config] = []

    def __call__(self, configs: Sequence[Config]) -> list[Answer]:
        self.asked += configs
        return [self.answer(config) for config in configs]

    def answer(self, config: Config) -> Answer:
        for number, rule in enumerate(self.rules):
            if not holds(rule, config):
                return Answer(Outcome.REJECTED, reason=f"reason {'abcdefgh'[number]}", line=str(number))
        return Answer(Outcome.PASS, digest=self.digest(config))

    def allows(self, config: Config) -> bool:
        return all(holds(rule, config) for rule in self.rules)


class HangsOn(HiddenConstraints):
    """An oracle with some configurations that never return."""

    def __init__(self, hangs: str, *rules: str) -> None:
        super().__init__(*rules)
        self.hangs = Written(hangs)

    def answer(self, config: Config) -> Answer:
        return Answer(Outcome.HUNG) if holds(self.hangs, config) else super().answer(config)


def product(space: dict[str, Sequence[Value]]) -> list[Config]:
    return [dict(zip(space, values, strict=True)) for values in itertools.product(*space.values())]


def mistakes(learned: Learned, oracle: HiddenConstraints, space: dict[str, Sequence[Value]]) -> list[Config]:
    return [config for config in product(space) if learned.allows(config) != oracle.allows(config)]


def literal(expression: str, line: int = 7) -> LiteralRule:
    return LiteralRule(f"read: {expression}", expression, (), Location("kernel", "kernel.py", line))


# ---- learned = hidden ----------------------------------------------------------------------------------------------


@st.composite
def hidden_spaces(draw: st.DrawFn) -> tuple[dict[str, Sequence[Value]], list[Relation], int]:
    names = ("BM", "BN", "NW", "MODE")
    space: dict[str, Sequence[Value]] = {
        name: tuple(2**i for i in range(draw(st.integers(2, 4)))) for name in names[:3]
    }
    space["MODE"] = ("a", "b", "c", "d")[: draw(st.integers(2, 4))]
    number = st.sampled_from(names[:3])

    def product_rule() -> Relation:
        factors = tuple(KnobTerm(name) for name in draw(st.lists(number, min_size=1, max_size=3, unique=True)))
        op = draw(st.sampled_from((Op.AT_MOST, Op.AT_LEAST)))
        return Compare(Product(factors), op, Number(2 ** draw(st.integers(0, 4))))

    def ratio_rule() -> Relation:
        left, right = draw(st.lists(number, min_size=2, max_size=2, unique=True))
        return Compare(KnobTerm(left), draw(st.sampled_from(list(Op))), KnobTerm(right))

    def conditional() -> Relation:
        return AnyOf((Member("MODE", (draw(st.sampled_from(space["MODE"])),)), ratio_rule()))

    makers = (product_rule, ratio_rule, conditional)
    rules = [draw(st.sampled_from(makers))() for _ in range(draw(st.integers(1, 3)))]
    return space, rules, draw(st.integers(0, 5))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(hidden_spaces())
def test_learned_space_equals_hidden_space_on_every_config(
    case: tuple[dict[str, Sequence[Value]], list[Relation], int],
) -> None:
    space, rules, seed = case
    oracle = HiddenConstraints(*rules)
    baseline = next((config for config in product(space) if oracle.allows(config)), None)
    learned = learn(oracle, space, baseline=baseline, seed=seed)
    assert mistakes(learned, oracle, space) == []
    assert len(oracle.asked) <= 500


@pytest.mark.parametrize("seed", range(3))
def test_the_rules_of_a_gemm_are_found_in_their_own_words(seed: int) -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, seed=seed, budget=100, validate=60)
    assert mistakes(learned, oracle, GEMM) == []
    said = {item.words for item in learned.constraints}
    assert said == {
        "BLOCK_N * num_warps <= 512",
        "GROUP_SIZE_M = 1 or NUM_KSPLIT = 1",
        "BLOCK_M >= 16 * num_warps",
    }
    assert all(item.failed > 0 and item.passed > 0 for item in learned.constraints)
    assert learned.feasible == sum(oracle.allows(config) for config in product(GEMM))
    assert learned.before_validation <= 100


def test_an_island_that_needs_three_moves_is_found() -> None:
    rule = "BLOCK_M <= 64 and num_warps <= 4 or BLOCK_M == 128 and num_warps == 8 and BLOCK_N == 32"
    oracle = HiddenConstraints(rule)
    learned = learn(oracle, GEMM, baseline=BASELINE)
    assert mistakes(learned, oracle, GEMM) == []


def test_the_same_seed_asks_the_same_questions() -> None:
    runs = [HiddenConstraints(*RULES) for _ in range(2)]
    results = [learn(oracle, GEMM, baseline=BASELINE, seed=5, budget=60, validate=20) for oracle in runs]
    assert runs[0].asked == runs[1].asked
    assert results[0] == results[1]


@pytest.mark.parametrize(("budget", "validate"), [(20, 0), (20, 10), (50, 30)])
def test_no_more_is_asked_than_allowed(budget: int, validate: int) -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, budget=budget, validate=validate)
    assert len(oracle.asked) <= budget + validate
    assert sum(item.kind == "validate" for item in learned.asked) <= validate


def test_a_small_space_is_asked_completely() -> None:
    space: dict[str, Sequence[Value]] = {"A": (1, 2, 4), "B": (1, 2, 4), "C": ("x", "y")}
    oracle = HiddenConstraints("A * B <= 4")
    learned = learn(oracle, space, baseline={"A": 1, "B": 1, "C": "x"})
    assert learned.enumerated and len(oracle.asked) == 18
    assert mistakes(learned, oracle, space) == []
    assert all(stratum.error_bound == 0 for stratum in learned.certificate.strata)


# ---- answers that are no evidence ----------------------------------------------------------------------------------


def test_what_hangs_is_reported_and_never_fitted() -> None:
    oracle = HangsOn("num_warps == 8", *RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, budget=120, validate=30)
    assert learned.unknown and all(config["num_warps"] == 8 for config in learned.unknown)
    answered = [config for config in product(GEMM) if config["num_warps"] != 8]
    assert [config for config in answered if learned.allows(config) != oracle.allows(config)] == []
    assert any("no answer that is evidence" in note for note in learned.notes)


def test_two_outcomes_for_one_configuration_are_reported_and_never_fitted() -> None:
    rows = [(config, HiddenConstraints(*RULES).answer(config)) for config in product(GEMM)]
    torn = next(config for config, answer in rows if answer.passed)
    table = make_table("torn", [*rows, (torn, Answer(Outcome.CRASHED, reason="SIGABRT"))])
    assert table.unstable == (torn,)
    learned, score = learn_table(table, budget=120, validate=30)
    assert (score.precision, score.recall) == (1, 1)
    assert not any("SIGABRT" in item.reason for item in learned.constraints)


def test_an_oracle_that_changes_its_mind_is_caught() -> None:
    class Torn(HiddenConstraints):
        """An oracle with a configuration that passes the first time and crashes from then on."""

        def answer(self, config: Config) -> Answer:
            if config == BASELINE and self.asked.count(config) > 1:
                return Answer(Outcome.CRASHED, reason="SIGABRT")
            return super().answer(config)

    from gluonmap.acquire.evidence import UNKNOWN, EvidenceTable
    from gluonmap.acquire.forms import Forms
    from gluonmap.acquire.predicates import Predicates
    from gluonmap.acquire.space import space_of

    space = space_of(GEMM)
    forms = Forms(space)
    evidence = EvidenceTable(space, forms, Predicates(space, forms))
    oracle, row = Torn(), space.encode(BASELINE)
    evidence.add([row], oracle([BASELINE]))
    evidence.add([row], oracle([BASELINE]))
    assert evidence.labels.tolist() == [UNKNOWN]
    assert [answer.outcome for answer in evidence.unstable[row]] == [Outcome.PASS, Outcome.CRASHED]


# ---- one question at a time ----------------------------------------------------------------------------------------


def run(session: Session, oracle: HiddenConstraints, jobs: int = 3, *, last_first: bool = False) -> list[Question]:
    """Keep `jobs` questions in flight until the session is done; return the questions in the order asked."""
    waiting: list[Question] = []
    asked: list[Question] = []
    while not session.done:
        while len(waiting) < jobs and (question := session.next()) is not None:
            waiting.append(question)
            asked.append(question)
        assert len(waiting) == session.in_flight > 0
        question = waiting.pop(-1 if last_first else 0)
        session.tell(question.config, oracle([question.config])[0])
    assert session.next() is None
    return asked


@pytest.mark.parametrize("last_first", [False, True])
def test_answers_may_come_in_any_order(last_first: bool) -> None:
    oracle = HiddenConstraints(*RULES)
    session = start(GEMM, baseline=BASELINE, budget=100, validate=40)
    asked = run(session, oracle, jobs=4, last_first=last_first)
    learned = session.finish()
    assert mistakes(learned, oracle, GEMM) == []
    assert session.asked == len(asked) == len(learned.asked) <= 140
    assert session.validating and learned.certificate.strata[0].fresh > 0
    configs = [json.dumps(question.config) for question in asked if not question.again]
    assert len(configs) == len(set(configs))


def test_the_same_order_of_answers_brings_the_same_questions() -> None:
    sessions = [start(GEMM, baseline=BASELINE, seed=3, budget=50, validate=20) for _ in range(2)]
    first, second = (run(session, HiddenConstraints(*RULES), last_first=True) for session in sessions)
    assert first == second


def test_what_was_learned_can_be_had_at_any_time() -> None:
    oracle = HiddenConstraints(*RULES)
    session = start(GEMM, baseline=BASELINE)
    for _ in range(30):
        question = session.next()
        assert question is not None
        session.tell(question.config, oracle([question.config])[0])
    first, left = session.next(), session.next()
    assert first is not None and left is not None
    session.stop()
    assert session.next() is None and not session.done
    session.tell(first.config, oracle([first.config])[0])
    learned = session.finish()
    assert len(learned.asked) == session.asked == 31 and session.in_flight == 1
    assert left.config not in [item.config for item in learned.asked]
    assert all(learned.allows(item.config) == item.answer.passed for item in learned.asked)
    assert all(stratum.fresh == 0 for stratum in learned.certificate.strata)


def test_a_session_without_an_answer_claims_nothing() -> None:
    session = start(GEMM, baseline=BASELINE)
    assert session.next() == Question(BASELINE, "baseline")
    assert session.next() is None and not session.done
    assert session.finish().asked == ()


def test_what_is_known_is_evidence_and_no_question() -> None:
    oracle = HiddenConstraints(*RULES)
    singles = [BASELINE | {name: value} for name, values in GEMM.items() for value in values]
    strange: list[Config] = [BASELINE | {"num_warps": 3}, {"BLOCK_M": 16}]
    known = [(config, oracle.answer(config)) for config in singles]
    known += [(config, Answer(Outcome.CRASHED, reason="outside of the domains")) for config in strange]
    session = start(GEMM, baseline=BASELINE, known=known, budget=60, validate=20)
    asked = run(session, oracle)
    learned = session.finish()
    assert not any(question.config in singles for question in asked if not question.again)
    assert session.asked == len(asked) == sum(item.kind != "known" for item in learned.asked) <= 80
    assert learned.before_validation <= 60
    assert {item.kind for item in learned.asked[: len(singles)]} == {"known"}
    assert mistakes(learned, oracle, GEMM) == []


def test_what_is_asked_again_says_so_and_an_unstable_answer_is_never_fitted() -> None:
    odd: Config = {"A": 2, "B": 4, "C": "y", "D": "q"}
    space: dict[str, Sequence[Value]] = {"A": (1, 2, 4, 8), "B": (1, 2, 4, 8), "C": ("x", "y"), "D": ("p", "q")}
    session = start(space, baseline={"A": 1, "B": 1, "C": "x", "D": "p"})
    again = []
    while not session.done:
        question = session.next()
        assert question is not None
        again += [question.config] if question.again else []
        torn = question.config == odd and not question.again
        session.tell(question.config, Answer(Outcome.CRASHED, reason="SIGSEGV") if torn else Answer(Outcome.PASS))
    learned = session.finish()
    assert again == [odd]
    assert [(item.config, item.outcomes) for item in learned.unstable] == [(odd, ("CRASHED", "PASS"))]
    assert learned.constraints == ()


def test_a_session_where_nothing_but_the_baseline_passes_ends_with_a_note() -> None:
    oracle = HiddenConstraints(*(f"{name} == {value}" for name, value in BASELINE.items()))
    session = start(GEMM, baseline=BASELINE, budget=100, validate=30)
    run(session, oracle)
    learned = session.finish()
    assert learned.feasible == 1 and mistakes(learned, oracle, GEMM) == []
    assert "Nothing but one configuration passes" in learned.notes[0]


def test_a_session_where_everything_passes_learns_no_constraint() -> None:
    session = start(GEMM, baseline=BASELINE, budget=60, validate=30)
    run(session, HiddenConstraints())
    learned = session.finish()
    assert learned.constraints == () and learned.feasible == learned.size
    assert "Everything passes" in learned.notes[0]


@pytest.mark.parametrize("answer", [Answer(Outcome.REJECTED, reason="reason a"), Answer(Outcome.HUNG), Answer(None)])
@pytest.mark.parametrize("before", [False, True])
def test_a_session_whose_baseline_does_not_pass_ends_at_once(answer: Answer, before: bool) -> None:
    session = start(GEMM, baseline=BASELINE, known=[(BASELINE, answer)] if before else [])
    if not before:
        question = session.next()
        assert question is not None and question.kind == "baseline"
        session.tell(question.config, answer)
    assert session.done and session.next() is None
    assert "Nothing can be learned around it" in session.finish().notes[0]


def test_deadlines_and_faults_are_told_and_never_fitted() -> None:
    oracle = HangsOn("num_warps == 8", *RULES)
    session = start(GEMM, baseline=BASELINE, budget=80, validate=20)
    run(session, oracle)
    learned = session.finish()
    assert learned.unknown
    answered = [config for config in product(GEMM) if config["num_warps"] != 8]
    assert [config for config in answered if learned.allows(config) != oracle.allows(config)] == []


def test_restrictions_that_the_baseline_violates_are_refused() -> None:
    with pytest.raises(UsageError, match=r"violates the restriction BLOCK_M <= 32 \(BLOCK_M = 64\)"):
        start(GEMM, baseline=BASELINE, given=["BLOCK_M <= 32"])


def test_a_baseline_outside_the_domains_is_refused() -> None:
    with pytest.raises(UsageError, match=r"num_warps = 16 is none of \[1, 2, 4, 8\]"):
        start(GEMM, baseline=BASELINE | {"num_warps": 16})


def test_learning_ends_before_its_budget_where_nothing_is_left_to_doubt() -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, budget=300, validate=0)
    assert mistakes(learned, oracle, GEMM) == []
    assert len(learned.asked) <= 220


def test_deep_learning_finds_a_rare_combination_of_three_values() -> None:
    space: dict[str, Sequence[Value]] = dict.fromkeys("ABCD", (1, 2, 4, 8))
    oracle = HiddenConstraints("A != 4 or B != 2 or C != 8")
    learned = learn(oracle, space, baseline=dict.fromkeys(space, 1), deep=True, validate=0)
    assert mistakes(learned, oracle, space) == []
    assert len(oracle.asked) <= 300


# ---- spaces at the extremes ----------------------------------------------------------------------------------------


def test_where_everything_passes_the_note_says_so() -> None:
    learned = learn(HiddenConstraints(), GEMM, baseline=BASELINE, budget=60, validate=30)
    assert learned.constraints == () and learned.feasible == learned.size == 576
    assert "Everything passes" in learned.notes[0]


@pytest.mark.long
def test_where_nothing_but_the_baseline_passes_the_note_says_so() -> None:
    rules = [f"{name} == {value}" for name, value in BASELINE.items()]
    oracle = HiddenConstraints(*rules)
    learned = learn(oracle, GEMM, baseline=BASELINE)
    assert mistakes(learned, oracle, GEMM) == []
    assert any("Nothing but one configuration passes" in note for note in learned.notes)


@pytest.mark.long
def test_a_failing_baseline_names_the_nearest_configuration_that_passes() -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE | {"BLOCK_N": 128, "num_warps": 8})
    assert "The baseline is REJECTED (reason a)" in learned.notes[0]
    assert mistakes(learned, oracle, GEMM) == []


def test_where_nothing_passes_the_search_ends_early() -> None:
    oracle = HiddenConstraints("BLOCK_M < 0")
    learned = learn(oracle, GEMM, baseline=BASELINE)
    assert len(oracle.asked) < 120
    assert "none of" in learned.notes[0] and "--depth singles" in learned.notes[0]


# ---- given and read ------------------------------------------------------------------------------------------------


def test_what_the_user_forbids_is_never_asked() -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, given=["BLOCK_M * BLOCK_N <= 4096"], budget=80, validate=20)
    assert all(int(c["BLOCK_M"]) * int(c["BLOCK_N"]) <= 4096 for c in oracle.asked)  # type: ignore[arg-type]
    assert [item.words for item in learned.constraints if item.standing is Standing.GIVEN] == [
        "BLOCK_M * BLOCK_N <= 4096"
    ]


def test_a_rule_read_from_the_source_is_confirmed_by_probing() -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(
        oracle, GEMM, baseline=BASELINE, read=[literal("BLOCK_M >= 16 * num_warps")], budget=80, validate=20
    )
    rule = next(item for item in learned.constraints if item.standing is Standing.READ)
    assert rule.confirmed and rule.failed > 0 and rule.line == "2"  # the failure's own line
    assert mistakes(learned, oracle, GEMM) == []


def test_a_rule_read_wrongly_is_dropped() -> None:
    oracle = HiddenConstraints(*RULES)
    learned = learn(oracle, GEMM, baseline=BASELINE, read=[literal("BLOCK_M >= 64")], budget=100, validate=60)
    assert not any(item.standing is Standing.READ for item in learned.constraints)
    assert mistakes(learned, oracle, GEMM) == []


# ---- programs ------------------------------------------------------------------------------------------------------


def test_a_knob_that_matters_under_a_condition_is_told_with_it() -> None:
    def program(config: Config) -> str:
        return str([v for k, v in config.items() if k != "GROUP_SIZE_M" or config["NUM_KSPLIT"] == 1])

    learned = learn(HiddenConstraints(digest=program), GEMM, baseline=BASELINE, budget=150, validate=20)
    group = next(item for item in learned.inertness if item.knob == "GROUP_SIZE_M")
    assert group.words == "GROUP_SIZE_M matters only if NUM_KSPLIT = 1"


def test_knobs_behind_a_flag_are_not_idle_though_the_flag_is_off_at_the_baseline() -> None:
    space: dict[str, Sequence[Value]] = {
        "FLAG": [0, 1], "DEPTH": [1, 2, 3, 4], "PHASE": [1, 2, 4], "TILE": [16, 32, 64, 128], "GROUP": [1, 2, 4, 8],
    }  # fmt: skip
    baseline: Config = {"FLAG": 0, "DEPTH": 2, "PHASE": 1, "TILE": 64, "GROUP": 1}

    def program(config: Config) -> str:
        return str((config["TILE"], config["FLAG"] and (config["DEPTH"], config["PHASE"])))

    oracle = HiddenConstraints("TILE * DEPTH <= 256", digest=program)
    for seed in range(3):
        learned = learn(oracle, space, baseline=baseline, budget=200, validate=20, seed=seed)
        told = {item.knob: item.condition for item in learned.inertness}
        assert told["DEPTH"] == told["PHASE"] == "FLAG = 1"
        assert told["GROUP"] == ""
        everywhere = {item.knob: item.classes for item in learned.value_classes if not item.where}
        assert not {"DEPTH", "PHASE"} & everywhere.keys()


def test_sameness_that_was_not_compared_everywhere_is_not_claimed() -> None:
    space: dict[str, Sequence[Value]] = {
        "FLAG": [0, 1],
        "DEPTH": [1, 2],
        "TILE": [16, 32, 64, 128],
        "N": list(range(40)),
    }
    baseline: Config = {"FLAG": 0, "DEPTH": 1, "TILE": 64, "N": 0}
    oracle = HiddenConstraints(digest=lambda c: str((c["TILE"], c["FLAG"] and c["DEPTH"])))
    learned = learn(oracle, space, baseline=baseline, budget=6, validate=0)
    for item in learned.inertness:
        assert item.condition != "" or item.knob == "FLAG" or not item.same or "never beside" not in item.words
    depth = next((item for item in learned.inertness if item.knob == "DEPTH"), None)
    assert depth is None or depth.condition in ("not compared everywhere", "always")


def test_a_failure_that_later_passes_leaves_no_constraint_behind() -> None:
    space: dict[str, Sequence[Value]] = {name: [0, 1, 2, 3] for name in "ABCD"}
    flaky = {"A": 1, "B": 2, "C": 0, "D": 2}
    session = start(space, baseline=dict.fromkeys("ABCD", 0), budget=120, validate=30)
    failure = Answer(Outcome.REJECTED, stage="front end", reason="x", line="1")
    session.tell(flaky, failure)
    session.tell(flaky, Answer(Outcome.PASS))
    while (question := session.next()) is not None or session.in_flight:
        assert question is not None
        fails = question.config["A"] == 3
        session.tell(question.config, failure if fails else Answer(Outcome.PASS))
    learned = session.finish()
    assert [item.words for item in learned.constraints] in (["A <= 2"], ["A != 3"])
    assert [item.config for item in learned.unstable] == [flaky]


def test_a_restriction_too_wide_to_keep_to_is_refused() -> None:
    space: dict[str, Sequence[Value]] = {f"K{i}": list(range(6)) for i in range(9)}
    wide = "+".join(space) + " <= 5"
    with pytest.raises(UsageError, match="reads 9 knobs with 10,077,696 combinations"):
        start(space, baseline=dict.fromkeys(space, 0), given=[wide])


def test_whole_numbers_stay_whole_beside_fractions() -> None:
    space: dict[str, Sequence[Value]] = {"B": [1, 2, 0.5], "C": [1, 2, 3]}
    oracle = HiddenConstraints()
    learned = learn(oracle, space, baseline={"B": 1, "C": 1}, given=["B < 1 or cdiv(8, C) >= 1"])
    assert learned.feasible == 9


def test_recall_is_not_claimed_where_nothing_was_drawn() -> None:
    learned = learn(HiddenConstraints(*RULES), GEMM, baseline=BASELINE, budget=40, validate=0)
    if not any(stratum.draws or stratum.complete for stratum in learned.certificate.strata[:2]):
        assert not any("of all passing" in text for text in learned.certificate.statements)


def test_unanswered_configurations_are_not_certified() -> None:
    space: dict[str, Sequence[Value]] = {"A": [0, 1, 2, 3], "B": [0, 1, 2]}

    def oracle(configs: Sequence[Config]) -> list[Answer]:
        return [Answer(Outcome.HUNG if c["A"] == c["B"] == 1 else Outcome.PASS) for c in configs]

    learned = learn(oracle, space, baseline={"A": 0, "B": 0})
    assert learned.unknown == ({"A": 1, "B": 1},)
    assert not any(stratum.complete and stratum.size for stratum in learned.certificate.strata)


def test_values_of_one_program_form_a_class() -> None:
    def program(config: Config) -> str:
        return str(config | {"GROUP_SIZE_M": max(4, int(str(config["GROUP_SIZE_M"])))})

    learned = learn(HiddenConstraints(digest=program), GEMM, baseline=BASELINE, budget=150, validate=20)
    assert [item.classes for item in learned.value_classes if item.knob == "GROUP_SIZE_M"] == [((1, 4), (8,))]


# ---- certificate and tables ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("draws", "bound"), [(72, 0.05), (183, 0.02), (368, 0.01)])
def test_the_bound_is_the_one_that_right_draws_prove(draws: int, bound: float) -> None:
    assert error_bound(draws, 0.95, 1) <= bound < error_bound(draws - 1, 0.95, 1)


def test_a_surprise_makes_the_bound_wider() -> None:
    assert error_bound(100, 0.95, 2) > error_bound(100, 0.95, 1)


def test_rows_absent_from_a_partial_table_are_never_asked(tmp_path: Path) -> None:
    oracle = HiddenConstraints(*RULES)
    rows = [config for number, config in enumerate(product(GEMM)) if number % 3]
    lines = [
        json.dumps({"config": c, "outcome": str(oracle.answer(c).outcome), "reason": oracle.answer(c).reason})
        for c in rows
    ]
    path = tmp_path / "part.jsonl"
    path.write_text("\n".join(lines) + "\n")
    learned, score = learn_table(read_table(path), budget=100, validate=60)
    assert all(item.config in rows for item in learned.asked)
    assert (score.precision, score.recall) == (1, 1)
    assert score.exact_from is not None and score.exact_from <= 100


@pytest.mark.parametrize("line", ["{", '{"config": {"A": 1}}', '{"config": {"A": 1}, "outcome": "FINE"}'])
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"config": {"A": 1}, "outcome": "PASS"}\n' + line + "\n")
    with pytest.raises(UsageError, match="line 2"):
        read_table(path)


def test_a_lone_failure_that_nothing_explains_is_asked_again() -> None:
    class Flaky(HiddenConstraints):
        """An oracle with a configuration that fails the first time and passes from then on."""

        def answer(self, config: Config) -> Answer:
            if config == self.odd and self.asked.count(config) == 1:
                return Answer(Outcome.CRASHED, reason="SIGSEGV")
            return super().answer(config)

        odd: Config

    space: dict[str, Sequence[Value]] = {
        "A": (1, 2, 4, 8),
        "B": (1, 2, 4, 8),
        "C": ("x", "y", "z"),
        "D": ("p", "q", "r"),
    }
    oracle = Flaky()
    oracle.odd = {"A": 2, "B": 4, "C": "y", "D": "q"}
    learned = learn(oracle, space, baseline={"A": 1, "B": 1, "C": "x", "D": "p"})
    assert [item.config for item in learned.unstable] == [oracle.odd]
    assert learned.constraints == ()
    assert any("answered in two ways" in note for note in learned.notes)


# ---- words of the certificate, and of constraints -------------------------------------------------------------------


def test_a_bound_that_leaves_most_predictions_open_is_no_claim() -> None:
    def said(draws: int) -> str:
        bound = error_bound(draws, 0.95, 1)
        return stratum_words(StratumCertificate("predicted to pass", draws, draws, 14_400, False, bound), 0.95)

    assert said(1) == "predicted to pass (14,400 configurations): 1 uniform draw was right: too few to say anything."
    assert said(4).endswith("4 uniform draws in a row were right: too few to say anything.")
    assert said(10).endswith("so with 95% confidence at most 30.8% of them are mistaken.")


def test_a_knob_with_one_value_left_is_a_literal_in_the_formula_of_bytes() -> None:
    domains: dict[str, tuple[Value, ...]] = {"M": (16, 32, 64, 128), "N": (32, 64, 128, 256), "WARPS": (1, 2, 4, 8)}

    def answer(config: Config) -> Answer:
        if config["WARPS"] != 4:
            return Answer(Outcome.REJECTED, stage="front end", reason="Layout has 4 warps", line="k+1")
        needed = 4 * int(str(config["M"])) * int(str(config["N"]))
        if needed > 65_536:
            return Answer(Outcome.NO_RESOURCES, stage="llir", reason="budget", shared_bytes=needed)
        return Answer(Outcome.PASS, digest=str((config["M"], config["N"])), shared_bytes=needed)

    session = start(domains, baseline={"M": 16, "N": 32, "WARPS": 4}, budget=64, validate=0)
    while (question := session.next()) is not None:
        session.tell(question.config, answer(question.config))
    learned = session.finish()
    assert {item.words for item in learned.constraints} == {"WARPS = 4", "4 * M * N <= 65536"}
    assert learned.formula == "4 * M * N"
