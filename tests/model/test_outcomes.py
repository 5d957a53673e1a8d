"""The table of outcomes: what each row says, and that one more row is all that a new outcome needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from project import REPOSITORY

from gluonmap.acquire.answers import KNOWN
from gluonmap.audit.findings import FindingKind
from gluonmap.model import outcomes
from gluonmap.model.outcomes import COMPILED, OUTCOME_OF_STATUS, OUTCOMES, Feasibility, Outcome
from gluonmap.report.marks import OUTCOME_MARKS

DOCUMENTED = {
    0: "PASS",
    10: "REJECTED",
    11: "REJECTED",
    12: "NO_RESOURCES",
    13: "REJECTED",
    14: "WRONG",
    15: "CRASHED",
    16: "UNSAFE",
    17: "HUNG",
    20: "SKIPPED",
    21: "NOT_EXECUTED",
}


def test_every_documented_exit_status_maps_to_its_outcome() -> None:
    assert {status: outcome.value for status, outcome in sorted(OUTCOME_OF_STATUS.items())} == DOCUMENTED


@pytest.mark.parametrize("status", [1, 2, 3, 99, 126, 127, 128, 137, 139, 255])
def test_statuses_that_python_shells_and_lost_servers_leave_with_have_no_outcome(status: int) -> None:
    assert status not in OUTCOME_OF_STATUS


def test_every_outcome_has_an_exit_status() -> None:
    assert set(Outcome) == set(OUTCOME_OF_STATUS.values())


def test_every_outcome_has_its_own_mark() -> None:
    assert set(OUTCOME_MARKS) == set(Outcome)
    assert len({mark.glyph for mark in OUTCOME_MARKS.values()}) == len(Outcome)
    ascii_glyphs = {outcome.info.ascii_glyph for outcome in Outcome}
    assert len(ascii_glyphs) == len(Outcome)
    assert all(glyph.isascii() and len(glyph) == 1 for glyph in ascii_glyphs)


def test_every_failing_outcome_is_a_finding_of_an_audit() -> None:
    assert {o for o in Outcome if o.info.finding} == {o for o in Outcome if o.failed}
    assert {o.info.finding for o in Outcome if o.failed} <= {*FindingKind}


def test_the_sentence_of_a_script_takes_kind_and_deadline() -> None:
    said = {o: o.info.compile_ends.format(kind="SIGABRT", seconds="2.5") for o in Outcome}
    assert said[Outcome.CRASHED] == "dies of SIGABRT"
    assert said[Outcome.HUNG] == "does not end within 2.5 s"
    assert not any("{" in text for text in said.values())


def test_what_compiled_and_what_failed() -> None:
    assert COMPILED == (Outcome.PASS, Outcome.NOT_EXECUTED)
    assert {o for o in Outcome if o.undecided} == {Outcome.SKIPPED, Outcome.NOT_EXECUTED}
    assert {o for o in Outcome if o.failed} == set(Outcome) - {Outcome.PASS, Outcome.SKIPPED, Outcome.NOT_EXECUTED}


def test_what_a_compile_and_a_running_kernel_can_end_with() -> None:
    assert {o for o in Outcome if o.info.from_running_code} == {
        Outcome.WRONG, Outcome.UNSAFE, Outcome.CRASHED, Outcome.HUNG,
    }  # fmt: skip
    assert {o for o in Outcome if o.failed and o.info.from_compile} == {
        Outcome.REJECTED, Outcome.CRASHED, Outcome.NO_RESOURCES, Outcome.HUNG,
    }  # fmt: skip


def test_what_the_learner_takes_as_labels() -> None:
    assert {Outcome.PASS, Outcome.REJECTED, Outcome.CRASHED, Outcome.NO_RESOURCES} == KNOWN


@pytest.mark.parametrize(
    ("name", "feasibility", "evidence"),
    [
        ("PASS", Feasibility.FEASIBLE, True),
        ("NOT_EXECUTED", Feasibility.FEASIBLE, True),
        ("UNSAFE", Feasibility.INFEASIBLE, True),
        ("HUNG", Feasibility.INFEASIBLE, False),
        ("SKIPPED", Feasibility.UNKNOWN, False),
        ("unknown", Feasibility.UNKNOWN, False),
        ("MELTED", Feasibility.UNKNOWN, False),
    ],
)
def test_an_outcome_counts_by_its_name(name: str, feasibility: Feasibility, evidence: bool) -> None:
    assert outcomes.feasibility(name) is feasibility
    assert outcomes.is_evidence(name) is evidence


# --- documentation ----------------------------------------------------------------------------------------------------


def undocumented(names: Iterable[str]) -> set[tuple[str, str]]:
    """Return (page, outcome) for each page that should list all outcomes and lacks one."""
    pages = ("README.md", "docs/map.md", "docs/reference/exit-codes.md")
    texts = {page: (REPOSITORY / page).read_text() for page in pages}
    return {(page, name) for page, text in texts.items() for name in names if name not in text}


def test_the_documentation_lists_every_outcome() -> None:
    assert undocumented(Outcome) == set()


# --- one row is enough ------------------------------------------------------------------------------------------------

ROW = """    Outcome.MELTED: OutcomeInfo(
        feasibility=Feasibility.INFEASIBLE,
        evidence=True,
        from_compile=True,
        from_running_code=True,
        glyph="M",
        ascii_glyph="m",
        colour="red",
        tone="crashed",
        word="melted",
        phrase="melts",
        plural="melt",
        finding="aborts",
        compile_ends="melts after {seconds} s of {kind}",
        executed="it melted",
        statuses={30: "The device is a puddle."},
    ),
"""
FACTS = """
import json
import msgspec
import reference
from maps import single_map
from gluonmap.acquire.answers import KNOWN
from gluonmap.model import outcomes
from gluonmap.audit.findings import FindingKind
from gluonmap.model.space_map import ValueMap
from gluonmap.model.knobs import Effect
from gluonmap.query.observations import Observation, Origin
from gluonmap.report.html.knob_table import TONES
from gluonmap.report.marks import OUTCOME_MARKS, fails, mark_legend, value_mark
from gluonmap.report.terminal_pieces import as_ascii

melted = outcomes.Outcome("MELTED")
value = ValueMap(64, "MELTED", Effect.ABORTING, digest="", detail="")
space = single_map()
knob = msgspec.structs.replace(space.knobs["M"], values=(value,))
space = msgspec.structs.replace(space, knobs={"M": knob})
print(json.dumps({
    "names": list(outcomes.Outcome),
    "status": outcomes.OUTCOME_OF_STATUS[30],
    "feasibility": outcomes.feasibility("MELTED"),
    "evidence": outcomes.is_evidence("MELTED"),
    "compiled": melted in outcomes.COMPILED,
    "label": melted in KNOWN,
    "word": OUTCOME_MARKS[melted].word,
    "fails": fails(value),
    "glyph": value_mark(value).glyph,
    "legend": mark_legend(space),
    "failed_on_device": Observation({}, "PASS", Origin.PROGRAM, executed="MELTED").failed_on_device,
    "finding": FindingKind(melted.info.finding),
    "script": melted.info.compile_ends.format(kind="SIGABRT", seconds="60"),
    "tone": TONES["melted"],
    "ascii": as_ascii("M"),
    "reference": [line for line in reference.codes_page().splitlines() if "MELTED" in line],
}))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package and of the script that writes the reference."""
    shutil.copytree(
        REPOSITORY / "gluonmap", tmp_path / "gluonmap", ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
    )
    shutil.copy(REPOSITORY / "docs/reference.py", tmp_path)
    return tmp_path


def edit(package: Path, *, row: str) -> None:
    """Add the member MELTED, and the given row."""
    path = package / "gluonmap/model/outcomes.py"
    text = path.read_text()
    name = list(Outcome)[-1].name
    last, end = f'    {name} = "{name}"\n', '}\n"""The facts about each outcome'
    assert text.count(last) == text.count(end) == 1
    path.write_text(text.replace(last, last + '    MELTED = "MELTED"\n').replace(end, row + end))


def python(package: Path, code: str) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join((str(package), str(REPOSITORY / "tests/doubles")))}
    return subprocess.run(
        [sys.executable, "-c", code], cwd=package, env=surroundings, capture_output=True, text=True, check=False
    )


def test_one_more_row_is_all_that_a_new_outcome_needs(package: Path) -> None:
    edit(package, row=ROW)
    done = python(package, FACTS)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    names = facts.pop("names")
    assert names == [*Outcome, "MELTED"]
    assert facts == {
        "status": "MELTED",
        "feasibility": "infeasible",
        "evidence": True,
        "compiled": False,
        "label": True,
        "word": "melted",
        "fails": True,
        "glyph": "M",
        "legend": [["M", "melted"]],
        "failed_on_device": True,
        "finding": "aborts",
        "script": "melts after 60 s of SIGABRT",
        "tone": "crashed",
        "ascii": "m",
        "reference": ["| 30 | MELTED | The device is a puddle. |", "| `MELTED` | melted | infeasible | yes |"],
    }
    assert {name for _, name in undocumented(names)} == {"MELTED"}


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ("", "the rows of OUTCOMES are not the members of Outcome"),
        (ROW.replace('        phrase="melts",\n', ""), "missing 1 required positional argument: 'phrase'"),
        (ROW.replace("30:", "11:"), "exit status 11 belongs to REJECTED and to MELTED"),
    ],
    ids=["no row", "no phrase", "a status of another"],
)
def test_an_outcome_without_its_facts_cannot_be_imported(package: Path, row: str, error: str) -> None:
    edit(package, row=row)
    assert error in python(package, "import gluonmap.model.outcomes").stderr


def test_the_rows_are_in_the_order_of_the_members() -> None:
    assert list(OUTCOMES) == list(Outcome)
