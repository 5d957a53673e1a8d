"""A run on the CPU in terminal, Markdown, HTML and diff: its own words, findings, figures. Maps made by hand."""

from __future__ import annotations

import io

import pytest
from executed_maps import RIGHT, WRITE, executed, other_result, program, unsafe, with_programs
from maps import BASELINE, joint_map, single_map
from msgspec.structs import replace
from rich.console import Console

from gluonmap.diff.comparison import difference
from gluonmap.model.candidate import Stage
from gluonmap.model.joint_map import Refused
from gluonmap.model.knobs import Effect
from gluonmap.model.space_map import ExecutedStage, Measured, SpaceMap, ValueMap
from gluonmap.model.verdict import Check, Figures, OutputError, Resources, SanitizerFinding
from gluonmap.report import execution, markdown, run_figures, terminal
from gluonmap.report.diff import sections
from gluonmap.report.diff.run_figures import lines as run_figure_changes
from gluonmap.report.html import map_page
from gluonmap.report.marks import value_mark
from gluonmap.report.sentences import failed_phrase, map_sentence
from gluonmap.report.tables import (
    NUMBERS_UNKNOWN,
    failing_values,
    program_rows,
    result_changing_values,
    unanswered_values,
)

BASE = Figures({"mfma": 25, "vector": 75}, 2, 8, 4, 120, 100, 16, 100, 6400)
CLASHING = replace(BASE, lds_passes=400, global_lines=200)
UNWRITTEN = SanitizerFinding(
    "LDS read before it was written", "ds_read_b32 v1, v0", 0, place="lib.py:4 called from k.py:1"
)


def live(value: int, digest: str, found: Figures | None, check: Check = RIGHT) -> ValueMap:
    return ValueMap(
        value, "PASS", Effect.LIVE, digest=digest, detail="instructions", resources=Resources(256, 1024, vgpr=40),
        measured=Measured(Stage.RUN, check, figures=found),
    )  # fmt: skip


def a_run(**values: ValueMap) -> SpaceMap:
    space = replace(executed(single_map(), **values), digest="base", resources=Resources(256, 1024, vgpr=32))
    return replace(space, measured=Measured(Stage.RUN, RIGHT, figures=BASE))


def in_terminal(space: SpaceMap, width: int = 200) -> str:
    out = io.StringIO()
    terminal.render(space, Console(width=width, file=out))
    return out.getvalue()


def everywhere(space: SpaceMap) -> dict[str, str]:
    html = map_page.render(space).decode()
    return {"terminal": in_terminal(space), "markdown": markdown.render(space), "html": html}


def test_the_title_and_the_terms_are_those_of_a_model_and_of_no_device() -> None:
    space = a_run()
    assert execution.title(space) == "Executed on the CPU (a model of gfx950)"
    assert list(execution.terms(space)) == [
        "right means: right on these inputs under this model of gfx950; no device was asked, and nothing here is a "
        "time",
        "compared with the probe file's reference; outputs poisoned before, guards around them",
        "relative error ‖out − ref‖ / ‖ref‖ at most: y 0.01 (default of bfloat16); elementwise 10 times that",
        "3 launches compared, on small problems: default M=64",
        "the sanitizer watched each first launch, and found nothing in 1 candidate",
    ]
    for text in everywhere(space).values():
        assert "Executed on the CPU (a model of gfx950)" in text
        assert "up to RUN" not in text
        assert "median µs" not in text


def test_sizes_of_values_that_ran_at_others_and_a_missing_sanitizer_are_told() -> None:
    large = replace(RIGHT, sizes=("M=256",), sanitized=False)
    space = a_run(N=live(64, "d", None, large))
    space = replace(space, measured=Measured(Stage.RUN, replace(RIGHT, sanitized=False)))
    assert list(execution.terms(space))[-2:] == [
        "N = 64: default M=256",
        "no sanitizer watched: --sanitize reports wrong accesses, waits and barriers too",
    ]


def test_values_of_a_knob_that_fared_alike_share_a_row_with_the_worst_error() -> None:
    worse = replace(RIGHT, errors=(replace(RIGHT.errors[0], relative=5e-3),))
    space = a_run(N=live(16, "a", None))
    space = executed(space, N=live(64, "b", None, worse))
    assert [execution.row_cells(space, row) for row in execution.rows(space)] == [
        ("baseline", "PASS", "1.0e-04, 1.0e-04", ""),
        ("N = 16, 64", "PASS", "5.0e-03, 1.0e-04", ""),
    ]


def test_numbers_of_launches_before_a_finding_are_not_shown_as_the_candidates() -> None:
    assert [row.error for row in execution.rows(a_run(M=unsafe(16)))] == ["1.0e-04, 1.0e-04", ""]


def test_elements_that_are_no_number_are_counted_in_the_place_of_an_error() -> None:
    check = Check((OutputError("y", 0.0, 0.0, 1e-2, 0.1, "bfloat16", misplaced=512),), 1)
    row = execution.row("x", "WRONG", "non-finite values", Measured(Stage.RUN, check))
    assert row is not None
    assert (row.outcome, row.error) == ("WRONG non-finite values", "512 NaN or infinite")


def test_findings_stand_by_line_of_the_kernel_in_all_forms() -> None:
    value = unsafe(16)
    assert value.measured and value.measured.check
    check = replace(value.measured.check, findings=(replace(WRITE, instructions=3), UNWRITTEN))
    space = a_run(M=replace(value, measured=replace(value.measured, check=check)))
    (line,) = execution.finding_statements(space)
    assert line.text == "M = 16"
    assert line.details == (
        "lib.py:4 called from k.py:1: LDS read before it was written: ds_read_b32 v1, v0 (wave 0)",
        "k.py:3: global access out of bounds: global_store_dword v[0:1], v2, off (wave 2, lane 7) 4 bytes behind y; "
        "3 instructions of this line",
    )
    for text in everywhere(space).values():
        assert "What the sanitizer found" in text
        assert "lib.py:4 called from k.py:1" in text
        assert "wave 2, lane 7" in text


def test_a_value_that_changes_the_result_has_a_mark_a_section_and_a_clause_of_its_own() -> None:
    space = a_run(M=other_result(16))
    assert value_mark(other_result(16)).word == "changes the result"
    assert "M = 16 changes the result" in map_sentence(space)
    assert [row.outcome for row in result_changing_values(space)] == ["changes the result"]
    assert all("M" not in row.knob for row in failing_values(space) if "16" in row.values)
    for text in everywhere(space).values():
        assert "Part of the problem, not of the tuning" in text
        assert "◇" in text
        assert "wrong numbers" not in text


def test_a_knob_all_of_whose_values_change_the_result_is_not_called_pinned() -> None:
    space = executed(single_map({"ACC": (1, 2, 3)}, {"ACC": 1}, ()), ACC=other_result(2))
    space = executed(space, ACC=other_result(3))
    assert "ACC is part of the problem: every value but 1 changes the result" in map_sentence(space)


def test_where_the_baseline_is_met_the_terms_say_that_nobody_knows_which_is_right() -> None:
    met = replace(RIGHT, against="baseline")
    space = replace(a_run(M=other_result(16)), measured=Measured(Stage.RUN, met))
    assert [row.error for row in execution.rows(space)] == [execution.ERROR_OF_REFERENCE, "1.0e-04, 1.0e-04"]
    assert execution.rows(space)[1].outcome == "other numbers"
    assert "the probe file has no reference" in "\n".join(execution.terms(space))


def test_what_was_not_executed_keeps_its_effect_and_its_numbers_are_unknown() -> None:
    silent = ValueMap(
        16, "NOT_EXECUTED", Effect.LIVE, "v_msad_u8 v2", stage="run", kind="NotExecuted", digest="d",
        measured=Measured(Stage.RUN),
    )  # fmt: skip
    space = a_run(M=silent)
    assert value_mark(silent).word == "live"
    assert unanswered_values(space) == []
    for text in everywhere(space).values():
        assert NUMBERS_UNKNOWN in text
        assert "v_msad_u8 v2" in text
        assert "never evidence about the kernel" not in text


def test_a_baseline_that_was_not_executed_has_a_whole_map() -> None:
    space = replace(a_run(), outcome="NOT_EXECUTED", measured=Measured(Stage.RUN))
    assert "knobs" in map_sentence(space)
    for text in everywhere(space).values():
        assert "Knobs" in text
        assert "The baseline NOT_EXECUTED" not in text


def test_an_endless_baseline_is_said_to_go_past_the_limit() -> None:
    space = replace(a_run(), outcome="HUNG", kind="steps")
    assert failed_phrase(space) == "goes past the limit of instructions when it is executed"


def test_figures_stand_beside_the_resources_and_what_is_worse_stands_out() -> None:
    space = a_run(N=live(64, "clash", CLASHING))
    assert [(f.head, f.text) for f in run_figures.run_figures(BASE)] == [
        ("instr/group", "50"),
        ("MFMA", "25.0%"),
        ("LDS conflicts", "1.20×"),
        ("line use", "100%"),
        ("scratch/group", "0 B"),
        ("waits/group", "4"),
        ("barriers/group", "2"),
    ]
    assert [f.head for f in run_figures.run_figures(CLASHING, BASE) if f.worse] == ["LDS conflicts", "line use"]
    assert run_figures.program_remarks(program_rows(space)) == [
        "LDS conflicts worse than the baseline's 1.20× with N = 64: 4.00×",
        "line use worse than the baseline's 100% with N = 64: 50%",
    ]
    said = everywhere(space)
    for text in said.values():
        assert "LDS conflicts" in text
        assert "no figure is a time" in text
        assert "scratch/group" not in text
    assert "**4.00×**" in said["markdown"]
    assert "4.00× △" in said["html"]


def test_programs_that_were_handed_over_have_figures_on_the_page() -> None:
    space = replace(executed(joint_map()), measured=Measured(Stage.RUN, RIGHT, figures=BASE), digest="base")
    space = with_programs(space, replace(program(), figures=BASE), replace(program(N=64), figures=CLASHING))
    assert "LDS conflicts worse than the baseline&#39;s 1.20× with N=64: 4.00×" in map_page.render(space).decode()


def test_many_programs_refused_for_one_reason_are_one_statement() -> None:
    space = with_programs(executed(joint_map()), program())
    assert space.joint
    refused = tuple(
        Refused({**BASELINE, "M": m, "N": n}, "d", "UNSAFE", "RUN", "LDS race", "ds_read")
        for m in (64, 128)
        for n in (16, 32)
    )
    (line,) = execution.refused(replace(space.joint, refused=refused))
    assert line.text == "4 programs, all with M = 64 or 128: UNSAFE LDS race (RUN)"
    assert line.details == ("for example M=64, N=16, STAGES=2, FLAG=False, MODE=None: ds_read",)
    assert execution.refused_title(space) == "Programs that compiled and did not pass when executed: not handed over"


def test_on_a_device_the_words_are_those_of_a_device() -> None:
    space = replace(a_run(), execution=ExecutedStage(Stage.CHECK, "AMD Instinct MI300X"))
    assert execution.title(space) == "On AMD Instinct MI300X, up to CHECK"
    assert "median µs" in execution.shown_heads(space)


@pytest.mark.parametrize(("before", "after"), [(BASE, CLASHING), (CLASHING, BASE)])
def test_a_diff_tells_figures_of_equal_configurations_at_equal_sizes(before: Figures, after: Figures) -> None:
    one, other = (a_run(N=live(16, "d", found)) for found in (before, after))
    said = {line.text for line in run_figure_changes(difference(one, other))}
    arrow = "1.20× → 4.00×" if before is BASE else "4.00× → 1.20×"
    assert f"LDS conflicts: {arrow} at N=16" in said
    larger = a_run(N=live(16, "d", after, replace(RIGHT, sizes=("M=128",))))
    assert list(run_figure_changes(difference(one, larger))) == []


def test_a_diff_with_a_map_of_compiles_calls_nothing_a_regression_and_nothing_newly_passing() -> None:
    ran, compiled = a_run(M=unsafe(16)), single_map()
    there, back = difference(compiled, ran), difference(ran, compiled)
    assert there.regressions == ()
    assert [str(change.turn) for change in there.values] == ["newly failing"]
    assert [str(change.turn) for change in back.values] == ["answered in one only"]
    titles = [section.title for section in sections.sections(there, ("a", "b"))]
    assert "Failing when executed, by a check that the other map did not make (1)" in titles
