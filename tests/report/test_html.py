"""The HTML report: all of a map is on its page, no text becomes markup, and the same map gives the same bytes."""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from html_pages import (
    HOSTILE,
    TAKES,
    Element,
    flat,
    hostile,
    raced,
    read,
    section,
    together,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from maps import BUDGET, constraint, joint_map, tried
from msgspec.structs import replace
from project import REPOSITORY
from report_maps import ABORTED, MXFP4

from gluonmap.cli.command_group import cli
from gluonmap.model import codec
from gluonmap.model.candidate import Stage
from gluonmap.model.joint_map import (
    Constraint,
    Refused,
    Sizes,
    Standing,
)
from gluonmap.model.knobs import Effect
from gluonmap.model.outcomes import Outcome
from gluonmap.model.relations import Member
from gluonmap.model.space_map import ExecutedStage, Measured
from gluonmap.model.verdict import Check, OutputError, Resources, Timing
from gluonmap.report.html import (
    knob_table,
    map_page,
    programs,
    site,
    space_sizes,
    templating,
)
from gluonmap.report.knobs import knobs_by_signature
from gluonmap.report.marks import EFFECT_MARKS, OUTCOME_MARKS
from gluonmap.report.plain_text import first_line, value_label, visible
from gluonmap.report.sentences import map_sentence
from gluonmap.report.tables import program_rows

MAPS = sorted((REPOSITORY / "reports").rglob("*.json"))


# --- a reader of pages ------------------------------------------------------------------------------------------------


# --- maps and races made by hand --------------------------------------------------------------------------------------


EVERYTHING = [MXFP4, ABORTED, together()]


@dataclass
class Page:
    """A page as bytes and as read."""

    data: bytes
    root: Element


def pages() -> Iterator[tuple[str, bytes]]:
    for path in MAPS:
        yield str(path), map_page.render(codec.read_map(path))
    for number, space in enumerate(EVERYTHING):
        yield f"by hand {number}", map_page.render(space, [raced(space)] if space.joint else [])
    yield "index", site.index([(f"{n}.html", space) for n, space in enumerate(EVERYTHING)])


@pytest.fixture(scope="module", name="made")
def _made() -> dict[str, Page]:
    return {name: Page(data, read(data)) for name, data in pages()}


# --- any page ---------------------------------------------------------------------------------------------------------


def test_every_page_is_well_formed_and_every_link_inside_it_leads_somewhere(made: dict[str, Page]) -> None:
    for name, found in made.items():
        root = found.root
        ids = [element.attributes["id"] for element in root.all() if "id" in element.attributes]
        assert sorted(set(ids)) == sorted(ids), name
        for element in root.all():
            for attribute in ("href", "aria-controls", "aria-labelledby"):
                target = element.attributes.get(attribute, "")
                if attribute != "href" or target.startswith("#"):
                    assert target.removeprefix("#") in {*ids, ""}, (name, attribute, target)


def test_headings_go_down_one_level_at_a_time(made: dict[str, Page]) -> None:
    for name, found in made.items():
        levels = [int(e.tag[1]) for e in found.root.all() if re.fullmatch("h[1-6]", e.tag)]
        assert levels[0] == 1, name
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), name
        assert levels.count(1) == 1, name


def test_no_page_fetches_anything_and_only_its_own_script_may_run(made: dict[str, Page]) -> None:
    for name, found in made.items():
        root = found.root
        (script,) = root.all("script")
        policy = next(m.attributes["content"] for m in root.all("meta") if "http-equiv" in m.attributes)
        own = base64.b64encode(hashlib.sha256(script.text.encode()).digest()).decode()
        assert policy.startswith("default-src 'none'; "), name
        assert f"script-src 'sha256-{own}'" in policy, name
        assert not re.search(r"url\(|@import", root.all("style")[0].text)
        assert not [e for e in root.all() if {"src", "srcset", "onclick", "onload"} & e.attributes.keys()], name
        assert [e.attributes["href"] for e in root.all("link")] == ["data:,"]


@pytest.mark.long
def test_the_same_map_gives_the_same_bytes_under_another_hash_seed(made: dict[str, Page]) -> None:
    program = (
        "import hashlib, sys; from pathlib import Path\n"
        "from gluonmap.model import codec; from gluonmap.report.html import map_page\n"
        "for path in sys.argv[1:]: print(hashlib.sha256(map_page.render(codec.read_map(Path(path)))).hexdigest())"
    )
    maps = [path for path in MAPS if "gemm" in path.name]
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    result = subprocess.run(
        [sys.executable, "-c", program, *map(str, maps)], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == [hashlib.sha256(made[str(path)].data).hexdigest() for path in maps]


def test_pages_of_committed_maps_stay_below_half_a_megabyte(made: dict[str, Page]) -> None:
    assert max(len(found.data) for found in made.values()) < 500_000


# --- the first screen -------------------------------------------------------------------------------------------------


def test_the_first_screen_says_what_a_person_would_say_and_how_much_is_left() -> None:
    root = read(map_page.render(together()))
    assert flat(root.all("h1")[0].text) == "double on gfx950 (cdna4)"
    assert flat(root.all("p", "sentence")[0].text) == map_sentence(together())
    bars = [[flat(cell.text) for cell in row.inside] for row in root.all("section", "funnel")[0].all("tr")]
    assert bars == [
        ["signature", "384", "5 knobs"],
        ["feasible", "300", "78% of the signature; meet all constraints"],
        ["programs", "100", "at most, by the rules of sameness"],
        ["compiled", "2", "distinct programs, compiled to machine code"],
    ]


@pytest.mark.parametrize(
    ("sizes", "bars"),
    [
        (Sizes(1000, 10, 2, complete=True), [("signature", 100.0), ("feasible", 33.33), ("programs", 10.03)]),
        (Sizes(1000), [("signature", 100.0), ("feasible", 0.0), ("compiled", 10.03)]),
        (Sizes(1, 1, 1, complete=True), [("signature", 100.0), ("feasible", 100.0), ("programs", 100.0)]),
        (Sizes(100, 0, 0, complete=True), [("signature", 100.0), ("feasible", 0.0), ("programs", 0.0)]),
    ],
)
def test_bars_are_as_long_as_the_logarithm_of_what_they_count(sizes: Sizes, bars: list[tuple[str, float]]) -> None:
    space = together()
    assert space.joint is not None
    found = space_sizes.bars(replace(space, joint=replace(space.joint, sizes=sizes)))
    assert [(bar.name, bar.width) for bar in found] == bars


def test_a_map_of_single_values_says_that_nothing_is_known_of_them_together() -> None:
    (bar,) = space_sizes.bars(MXFP4)
    assert (bar.name, bar.number) == ("signature", "1,769,472")
    assert "how they combine was not asked" in bar.note


def test_a_failing_baseline_is_told_with_its_whole_reason() -> None:
    root = read(map_page.render(ABORTED))
    assert "Invalid basis 128 for a dimension of size 64.\nsecond line" in root.all("pre")[0].text
    assert "python -m gluonmap.worker baseline.json" in section(root, "commands").text
    assert not root.all("button")


def test_unstable_code_is_said_at_the_top() -> None:
    assert "UNSTABLE" in read(map_page.render(replace(MXFP4, stable=False))).all("p", "warning")[0].text


# --- knobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_every_value_of_every_knob_has_a_cell_that_opens_all_that_is_known_of_it(made: dict[str, Page]) -> None:
    for name, space in [("by hand 0", MXFP4), *((str(path), codec.read_map(path)) for path in MAPS)]:
        root = made[name].root
        buttons = {button.attributes["id"]: button for button in root.all("button", "cell")}
        assert len(buttons) == sum(len(knob.values) for knob in space.knobs.values())
        for number, (name, knob) in enumerate(knobs_by_signature(space), 1):
            for place, value in enumerate(knob.values, 1):
                button = buttons[f"k{number}-{place}"]
                label = value_label(value.value)
                assert button.all("span", "value")[0].text == label
                assert button.attributes["aria-label"].startswith(f"{label}, ")
                part = root.identified(button.attributes["aria-controls"])
                assert part.attributes["aria-label"] == f"{name} = {label}"
                assert f"{name} = {label}" in part.all("h3")[0].text
                for text in (value.outcome, first_line(value.reason), value.repeat, *value.because, value.digest):
                    assert visible(text) in part.text
                if value.line is not None:
                    assert f"{value.file or space.file}:{value.line}" in part.text


def test_a_cell_says_by_glyph_and_tone_what_its_value_does() -> None:
    buttons = read(map_page.render(MXFP4)).all("button", "cell")
    looks = {b.attributes["aria-label"]: (b.all("span", "glyph")[0].text, b.attributes["class"]) for b in buttons}
    assert looks["256, baseline"] == ("●", "cell t-baseline")
    assert looks["64, crashed, SIGABRT"] == ("✗", "cell t-crashed")
    assert looks["16, rejected, RuntimeError"] == ("⊘", "cell t-rejected")
    assert looks["64, over a resource limit, budget"] == ("↑", "cell t-over")
    assert looks["128, hung, deadline"] == ("∞", "cell t-hung")
    assert looks["2, live on the host"] == ("⌂", "cell t-host")
    assert looks["on, unknown"] == ("?", "cell t-unknown")


def test_values_of_one_program_stand_in_one_chain() -> None:
    chains = [flat(chain.text) for chain in read(map_page.render(MXFP4)).all("span", "chain")]
    assert {"●0 ≡○1", "○1 ≡●2 ≡○3 ≡○4", "Δ4 ≡Δ8"} <= {re.sub("≡ ", "≡", chain) for chain in chains}
    part = read(map_page.render(MXFP4)).identified("k9-2-details")
    assert "inert; one program with 0" in part.text


def test_every_mark_has_a_tone_and_every_tone_a_colour_of_its_own() -> None:
    marks = (*OUTCOME_MARKS.values(), *EFFECT_MARKS.values())
    assert {mark.word for mark in marks} == set(knob_table.TONES)
    assert set(OUTCOME_MARKS) == set(Outcome)
    assert set(EFFECT_MARKS) == set(Effect)
    style = (Path(templating.__file__).parent / "templates/page.css").read_text()
    for tone in knob_table.TONES.values():
        assert f".t-{tone} {{" in style


# --- constraints and pairs --------------------------------------------------------------------------------------------


def test_a_constraint_is_told_with_both_its_sides_and_how_far_it_is_proved() -> None:
    root = read(map_page.render(together()))
    part = flat(root.identified("c1").text)
    for text in (
        "M * N * STAGES <= 8192 learned",
        "asked 3 broke it and failed so, 9 met it and got past",
        "tuples of its knobs' values: 1 of 16 that break it were tried, none passed; 1 of 48 that meet it were tried, "
        "1 seen passing",
        "failure ↑ NO_RESOURCES in llir 81,920 bytes > 65,536",
        "where k.py:7",
        "example N=128 fails where N=32 passes, both with M=128, STAGES=2, FLAG=True",
        "gluonmap repeat reports/double.json M=128 N=128 FLAG=True",
        "or cannot be told apart here from M + N <= 96",
        "proof By sampling: at 95% confidence at most 4.2% of the predicted passes and none of the predicted failures "
        "are mistaken.",
    ):
        assert text in part


@pytest.mark.parametrize(
    ("item", "enumerated", "text"),
    [
        (constraint(BUDGET, Standing.GIVEN), False, "Demanded, not proved: nothing that breaks it was asked."),
        (constraint(BUDGET), True, "By enumeration: every configuration of the signature was asked."),
        (constraint(Member("M", (16, 32, 64, 128))), False, "By sampling: no draw was made to test it."),
    ],
)
def test_a_constraint_is_proved_by_enumeration_by_sampling_or_not_at_all(
    item: Constraint, enumerated: bool, text: str
) -> None:
    space = joint_map(constraints=[item])
    assert space.joint is not None
    data = map_page.render(replace(space, joint=replace(space.joint, enumerated=enumerated)))
    assert text in flat(read(data).identified("c1").text)


def test_the_graph_draws_knobs_and_constraints_and_what_each_box_says() -> None:
    root = read(map_page.render(together()))
    graph = section(root, "constraints").all("svg")[0]
    boxes = {flat(a.all("text")[0].text): a.attributes for a in graph.all("a")}
    assert set(boxes) == {
        "M 4 values", "N 4 values", "STAGES 4 values", "FLAG 2 values", "MODE 3 values",
        "M * N * STAGES <= 8192", "STAGES matters only if FLAG = True",
    }  # fmt: skip
    budget = boxes["M * N * STAGES <= 8192"]
    assert budget["href"] == "#c1"
    assert budget["data-note"] == (
        "M * N * STAGES <= 8192. learned: 3 failed, 9 got past it. NO_RESOURCES 81,920 bytes > 65,536. k.py:7"
    )
    assert boxes["MODE 3 values"]["class"].split() == ["node", "knob", "inert"]
    assert len(graph.all("path")) == 5
    assert [flat(text.text) for text in graph.all("text", "groupname")] == ["tied together", "set aside: inert"]


def test_boxes_of_the_graph_overlap_nowhere(made: dict[str, Page]) -> None:
    for name, found in made.items():
        for graph in (svg for svg in found.root.all("svg") if svg.attributes["role"] == "group"):
            boxes = [tuple(int(r.attributes[n]) for n in ("x", "y", "width", "height")) for r in graph.all("rect")]
            for (x, y, w, h), (u, v, p, q) in itertools.combinations(boxes, 2):
                assert x + w <= u or u + p <= x or y + h <= v or v + q <= y, name
            assert max(x + w for x, _, w, _ in boxes) <= int(graph.attributes["width"])
            assert max(y + h for _, y, _, h in boxes) <= int(graph.attributes["height"])


def test_pairs_of_knobs_show_their_feasible_share_and_what_was_asked() -> None:
    heat = section(read(map_page.render(together())), "pairs").all("table", "heat")
    by_name = {flat(table.all("caption")[0].text): table for table in heat}
    rows = by_name["M down, N across"].all("tr")
    assert [flat(cell.text) for cell in rows[0].all("th")] == ["16", "32", "64", "128"]
    # M = 128: N = 16 and 32 leave 4 and 2 of 4 stages, 64 leaves one, 128 none.
    cells_ = rows[4].all("td")
    assert [cell.all("b")[0].text for cell in cells_] == ["100", "50", "25", "✗"]
    assert [cell.all("small")[0].text for cell in cells_] == ["–", "–", "–", "0/1"]
    assert cells_[3].attributes["title"] == "M = 128, N = 128: nothing is feasible; 0 of 1 asked passed"
    assert "STAGES down, FLAG across STAGES matters only if FLAG = True" in {flat(name) for name in by_name}


# --- programs ---------------------------------------------------------------------------------------------------------


def test_programs_stand_with_what_they_take_and_spills_are_marked() -> None:
    root = read(map_page.render(together()))
    part = section(root, "programs")
    rows = [[flat(cell.text) for cell in row.inside] for row in part.all("tr")]
    assert [flat(head).rstrip() for head in rows[0]] == ["#", "program", "M", "spills", "scratch", "asked"]
    assert rows[1:] == [
        ["1", "aa01 baseline", "32", "0", "0 B", "3"],
        ["2", "bb02", "64", "42 ▲", "168 B ▲", "1"],
    ]
    assert "Of 2 programs 1 spills, up to 42; 1 uses scratch, up to 168 B." in flat(part.text)
    assert "All take SGPR spills 0, VGPR 120, AGPR 0, SGPR 40, LDS 49,152 B, waves/SIMD 4" in flat(part.text)
    assert "never changed a program: MODE" in flat(part.text)


def test_what_does_not_end_in_the_compiler_is_told_beside_the_programs() -> None:
    assert "1 configuration did not end in the compiler" not in flat(
        section(read(map_page.render(together())), "knobs").text
    )
    space = together()
    assert space.joint is not None
    more = (*space.joint.tried, tried({"N": 64, "M": 64}, "HUNG"))
    endless = replace(space, joint=replace(space.joint, tried=more))
    assert programs.endless(endless) == ["M=64, N=64"]
    part = section(read(map_page.render(endless)), "programs")
    assert "1 configuration did not end in the compiler before the deadline" in flat(part.text)
    assert programs.endless(MXFP4) == ["NUM_KSPLIT = 128"]


def test_a_long_list_of_programs_is_cut_and_keeps_those_that_spill(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_ROWS", 1)
    part = section(read(map_page.render(together())), "programs")
    assert [flat(row.inside[1].text) for row in part.all("tr")[1:]] == ["bb02"]
    assert "1 of 2 programs, those that spill first; the JSON has all." in flat(part.text)


def test_without_a_joint_part_the_programs_are_those_of_single_values() -> None:
    table = programs.table(MXFP4)
    assert table is not None
    assert (table.total, table.rows[0].baseline) == (len(program_rows(MXFP4)), True)


def test_warps_that_fit_a_multiprocessor_are_told_for_hopper() -> None:
    found = {f.head: f.text for f in knob_table.figures("sm_90", Resources(256, 196_640, vgpr=154, spills=0))}
    assert found["warps/SM"] == "8"
    assert "warps/SM" not in {f.head for f in knob_table.figures("gfx950", TAKES)}


# --- a device ---------------------------------------------------------------------------------------------------------


def test_what_a_device_said_stands_in_a_table_in_the_cells_and_beside_the_programs() -> None:
    error = OutputError("out", 2e-4, 1e-3, 1e-2, 1e-1, "fp16")
    right = Measured(Stage.TIME, Check((error,), 3), Timing(120.5, 120.0, 121.0, 50))
    wrong = Measured(Stage.CHECK, Check((replace(error, relative=0.5),), 3, racy=True))
    space = together()
    assert space.joint is not None
    values = [replace(v, outcome="WRONG", effect=Effect.ABORTING, kind="relative error", measured=wrong)
              if v.value == 64 else v for v in space.knobs["M"].values]  # fmt: skip
    timed = tuple(replace(program, timing=right.timing) for program in space.joint.programs)
    space = replace(
        space,
        execution=ExecutedStage(Stage.TIME, "NVIDIA <H200>"),
        measured=right,
        knobs={**space.knobs, "M": replace(space.knobs["M"], values=tuple(values))},
        joint=replace(space.joint, programs=timed, refused=(Refused({"M": 64}, "cc03", "WRONG", "CHECK", "x", "y"),)),
    )
    root = read(map_page.render(space))
    part = section(root, "device")
    assert flat(part.all("h2")[0].text) == "On NVIDIA <H200>, up to TIME"
    rows = [[flat(cell.text) for cell in row.inside] for row in part.all("tr")[1:]]
    assert rows == [
        ["baseline", "PASS", "2.0e-04, 1.0e-03", "120.5 ± 0.4%", ""],
        ["M = 64", "WRONG relative error (CHECK)", "5.0e-01, 1.0e-03", "", "racy"],
    ]
    cell = root.identified("k1-3-details")
    assert "on the device up to CHECK error 5.0e-01, 1.0e-03 remark racy" in flat(cell.text)
    listed = section(root, "programs")
    assert "median µs" in flat(listed.all("thead")[0].text)
    assert "120.5 ± 0.4%" in flat(listed.all("tbody")[0].text)
    assert "M=64 WRONG x (CHECK): y" in flat(listed.text)


# --- races ------------------------------------------------------------------------------------------------------------


def test_a_race_shows_times_with_spread_the_noise_floor_and_ties() -> None:
    space = together()
    part = section(read(map_page.render(space, [raced(space)])), "race")
    rows = [[flat(cell.text) for cell in row.inside] for row in part.all("table")[0].all("tr")]
    assert rows[1:] == [
        ["M=64", "90.0", "85.0 – 95.0", "0.900", "0.880 – 0.920", "win", "leads"],
        ["M=16", "99.9", "94.9 – 104.9", "0.999", "0.990 – 1.002", "tie", "loses"],
        ["baseline", "100.0", "95.0 – 105.0", "1.000", "1.000 – 1.000", "", "loses"],
    ]
    assert "noise floor 0.40%, from the baseline twice: a smaller difference is a tie" in flat(part.text)
    assert "win: 10.0 % faster than the baseline" in part.text
    assert "M=16: out of <resources>" in flat(part.text)
    picture = part.all("svg")[0]
    band = picture.all("rect", "noise")[0].attributes
    one = int(re.match(r"M(\d+)", picture.all("path", "one")[0].attributes["d"])[1])
    assert int(band["x"]) < one < int(band["x"]) + int(band["width"])
    win, tie, base = (int(circle.attributes["cx"]) for circle in picture.all("circle"))
    assert win < int(band["x"]) < tie < base == one


def test_a_race_without_finalists_still_makes_a_page() -> None:
    space = together()
    record = raced(space, finalists=(), raced_us=(), failures=())
    assert "win: 10.0 %" in section(read(map_page.render(space, [record])), "race").text


def test_races_beside_a_map_are_found_and_broken_ones_are_told(tmp_path: Path) -> None:
    space = together()
    path = tmp_path / "double.gfx950.json"
    codec.write(path, codec.dumps(space))
    codec.write(tmp_path / "double.gfx950.M4096.race.json", codec.dumps(raced(space)))
    codec.write(tmp_path / "double.gfx950.other.race.json", codec.dumps(raced(space, kernel="another")))
    codec.write(tmp_path / "double.gfx950.cut.race.json", b'{"schema": ')
    codec.write(tmp_path / "double.race.json", codec.dumps(raced(space)))
    records, wrong = site.races_beside(path, codec.read_map(path))
    assert [record.verdict for record in records] == ["win: 10.0 % faster than the baseline"]
    assert len(wrong) == 1
    assert wrong[0].startswith("A race is left out: double.gfx950.cut.race.json is no record of a race")


# --- evidence ---------------------------------------------------------------------------------------------------------


def test_coverage_and_certificate_are_tables() -> None:
    coverage, certificate = section(read(map_page.render(together())), "evidence").all("table")
    rows = [[flat(cell.text) for cell in row.inside] for row in coverage.all("tr")[1:]]
    # The baseline and (128, 128) were answered; a deadline is no evidence.
    assert rows[0] == ["single values", "17", "7", "", "15", "14"]
    assert rows[1][0::4] == ["pairs", "80"]
    assert rows[2][4:] == ["–", "–"]
    strata = [[flat(cell.text) for cell in row.inside] for row in certificate.all("tr")[1:]]
    assert strata == [
        ["predicted to pass", "300", "70", "66", "4.2%"],
        ["predicted to fail", "84", "84", "84", "none: all asked"],
    ]
    statements = section(read(map_page.render(together())), "evidence").all("li")
    assert [flat(item.text) for item in statements] == ["Every value pair was seen passing."]


# --- hostile text -----------------------------------------------------------------------------------------------------


def test_text_of_others_is_shown_and_becomes_nothing_else() -> None:
    plain, strange = hostile("plain"), hostile(HOSTILE)
    race = raced(strange, device=HOSTILE, floor_from=HOSTILE, verdict=HOSTILE, failures=(({}, HOSTILE),))
    data = map_page.render(strange, [race], warnings=[HOSTILE])
    root, usual = (
        read(data),
        read(map_page.render(plain, [raced(plain, failures=(({}, "plain"),))], warnings=["plain"])),
    )
    assert [e.tag for e in root.all()] == [e.tag for e in usual.all()]
    assert root.all("h1")[0].all("span")[0].text == visible(HOSTILE)
    assert b"<script>alert" not in data
    assert b"onerror=alert(1)>" not in data
    assert "\x1b" not in data.decode()


def test_a_long_text_is_cut_and_whole_when_opened() -> None:
    text = "<&>" + "x" * 10_000 + "\nsecond & last"
    root = read(map_page.render(hostile(text)))
    part = root.identified("k1-1-details")
    reason = part.all("dd")[1]
    assert reason.all("span", "said")[0].text == "<&>" + "x" * 237 + " …"
    assert reason.all("summary")[0].text == "The whole text, 10,017 characters"
    assert reason.all("pre")[0].text == text


def test_a_text_beyond_all_measure_is_cut_with_a_word() -> None:
    part = read(map_page.render(replace(ABORTED, reason="y" * 1_000_000))).all("details")[0]
    assert part.all("summary")[0].text == "The whole text, 1,000,000 characters: the first 20,000"
    assert len(part.all("pre")[0].text) == 20_000


FOLDED = ("wbr", "details", "summary", "pre")
"""What names with underscores and texts of several lines have besides."""


@functools.cache
def usual() -> list[str]:
    return [e.tag for e in read(map_page.render(hostile("plain"))).all() if e.tag not in FOLDED]


@settings(max_examples=15, deadline=None)
@given(st.text(st.characters(), min_size=1, max_size=12))
def test_no_text_changes_what_elements_a_page_has(text: str) -> None:
    made = read(map_page.render(hostile(f"a{text}")))  # an empty text is left out
    assert [e.tag for e in made.all() if e.tag not in FOLDED] == usual()


# --- the index, and the command ---------------------------------------------------------------------------------------


def test_the_index_has_kernels_and_tritons_down_and_targets_across() -> None:
    older = replace(MXFP4, triton="3.6.0", target="gfx942")
    root = read(site.index([("a.html", MXFP4), ("b.html", older), ("c/d.html", together()), ("e.html", ABORTED)]))
    rows = root.all("tr")
    assert [flat(head.text) for head in rows[0].all("th")] == ["kernel", "Triton", "gfx942 cdna3", "gfx950 cdna4"]
    found = [
        (
            flat(row.all("span", "name")[0].text),
            flat(row.all("td")[0].text),
            [[(a.attributes["href"], flat(a.text)) for a in cell.all("a")] for cell in row.all("td")[1:]],
        )
        for row in rows[1:]
    ]
    assert found == [
        ("gemm_mxfp4", "3.6.0", [[("b.html", "1,769,472 configurations")], []]),
        (
            "gemm_mxfp4",
            "3.9.0",
            [[("e.html", "the baseline crashes the compiler")], [("a.html", "1,769,472 configurations")]],
        ),
        ("double", "3.9.0", [[], [("c/d.html", "384 configurations → 300 feasible → at most 100 programs")]]),
    ]
    assert flat(root.all("p", "origin")[0].text) == "4 maps, 2 kernels, 2 targets, Triton 3.6.0 and 3.9.0"


@pytest.fixture(name="project")
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("deep/double.gfx950", "index"):
        codec.write(tmp_path / f"reports/{name}.json", codec.dumps(together()))
    codec.write(tmp_path / "reports/deep/double.gfx950.M4096.race.json", codec.dumps(raced(together())))
    return tmp_path


def test_report_writes_a_page_beside_each_map(project: Path) -> None:
    done = CliRunner().invoke(cli, ["report"])
    assert done.exit_code == 0, done.output
    beside = read((project / "reports/deep/double.gfx950.html").read_bytes())
    assert section(beside, "race")
    assert beside.all("a", "brand") == []
    assert (project / "reports/deep/double.gfx950.md").exists()
    assert (project / "reports/index.html").exists()


def test_report_html_writes_pages_that_find_each_other(project: Path) -> None:
    done = CliRunner().invoke(cli, ["report", "--html", "out", "reports/deep/double.gfx950.json", "reports/index.json"])
    assert done.exit_code == 0, done.output
    links = [a.attributes["href"] for a in read((project / "out/index.html").read_bytes()).all("a") if a.text.strip()]
    pages_ = [link for link in links if not link.startswith("#")]
    assert pages_ == ["deep/double.gfx950.html", "index.map.html"]
    for link in pages_:
        target = project / "out" / link
        home = read(target.read_bytes()).all("a", "brand")[0].attributes["href"]
        assert (target.parent / home).resolve() == (project / "out/index.html").resolve()


def test_maps_of_one_name_in_two_folders_get_two_pages(project: Path) -> None:
    codec.write(project / "reports/other/double.gfx950.json", codec.dumps(together()))
    CliRunner().invoke(cli, ["report", "--html", "out", *map(str, (project / "reports").rglob("double.gfx950.json"))])
    assert (project / "out/deep/double.gfx950.html").exists()
    assert (project / "out/other/double.gfx950.html").exists()


def test_one_map_named_twice_is_one_page(project: Path) -> None:
    same = ["reports/deep/double.gfx950.json", str(project / "reports/deep/double.gfx950.json")]
    done = CliRunner().invoke(cli, ["report", "--html", "out", *same])
    assert done.exit_code == 0, done.output
    assert len(read((project / "out/index.html").read_bytes()).all("div", "entry")) == 1
