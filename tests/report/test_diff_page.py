"""The HTML page of a difference."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest
from compared_maps import NAMES, REPOSITORY, budget, committed, compared, with_texts
from html_pages import HOSTILE as HOSTILE_MARKUP
from html_pages import Element, flat, read, section
from maps import joint_map, single_map
from msgspec.structs import replace

from gluonmap.diff.comparison import difference
from gluonmap.diff.knobs import KnobChange
from gluonmap.diff.resources import Growth
from gluonmap.model.joint_map import Sizes
from gluonmap.model.relations import AnyOf, Bound, Member, Op
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.diff.headline import headline
from gluonmap.report.diff.regressions import grew
from gluonmap.report.html import diff_page, resource_changes
from gluonmap.report.plain_text import visible


def page_of(one: SpaceMap, other: SpaceMap, names: tuple[str, str] = NAMES) -> Element:
    return read(diff_page.render(difference(one, other), names))


def rows_of(table: Element) -> list[list[str]]:
    return [[flat(cell.text) for cell in row.inside] for row in table.all("tr")]


def test_the_page_says_the_verdict_first_and_what_it_rests_on() -> None:
    page = page_of(*compared())
    (head,) = page.all("header", "head")
    assert flat(head.all("h1")[0].text) == "double on gfx950 (cdna4), Triton 3.9.0 → 3.6.0"
    assert [flat(item.text) for item in head.all("dd")] == [
        "a.json: double on gfx950 (cdna4), Triton 3.9.0",
        "b.json: double on gfx950 (cdna4), Triton 3.6.0",
    ]
    verdict, changes, basis = (flat(item.text) for item in head.all("p"))
    assert verdict == (
        "▲ Regressions: 3 values fail, 1 program is no longer handed over, spills grew in 1 program and registers grew "
        "in 1 program."
    )
    assert changes.startswith("2 values newly aborting, 1 value newly failing, 1 value newly inert")
    assert basis == (
        "16 configurations asked for both: 13 passed both; 3 changed sides. Of 3 programs known in both, 1 are the "
        "same code. Of 3 pairs of programs, VGPR grew in 1 and fell in 1; spills grew in 1."
    )
    anchors = [section.attributes.get("aria-labelledby") for section in page.all("section")]
    assert anchors[1:] == [
        "circumstances",
        "mind",
        "regressions",
        "values",
        "knobs",
        "constraints",
        "resources",
        "evidence",
    ]


def test_both_spaces_are_side_by_side_on_one_scale() -> None:
    def of(feasible: int, programs: int) -> SpaceMap:
        space = joint_map()
        assert space.joint
        return replace(space, joint=replace(space.joint, sizes=Sizes(1000, feasible, programs)))

    page = page_of(of(100, 10), of(1000, 100))
    (funnel,) = page.all("section", "funnel")
    assert rows_of(funnel.all("table")[0]) == [
        ["signature", "A", "1,000", "", ""],
        ["B", "1,000", "", ""],
        ["feasible", "A", "100", "10%", ""],
        ["B", "1,000", "100%", ""],
        ["programs", "A", "10", "at most, 10%", ""],
        ["B", "100", "at most, 10%", ""],
    ]
    widths = [fill.attributes["style"] for fill in funnel.all("span", "fill")]
    assert widths == [f"width:{width}%" for width in (100.0, 100.0, 66.67, 100.0, 33.33, 66.67)]


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [(61, 62, "SGPR 61 → 62"), (60, 66, "SGPR 60 → 66 (1.1 ×)"), (0, 9, "SGPR 0 → 9"), (9, 3, "SGPR 9 → 3")],
)
def test_growth_that_is_hardly_any_is_no_factor(before: int, after: int, words: str) -> None:
    found = difference(joint_map(), joint_map())
    assert grew(found, Growth({}, "sgpr", before, after)) == words


def test_a_sentence_does_not_capitalise_the_name_of_a_knob() -> None:
    found = replace(difference(joint_map(), joint_map()), knobs=(KnobChange("schedule_hint", None, None),))
    assert headline(found) == "No regression. 1 knob turned by one map only (schedule_hint)."


def test_what_only_one_map_allows_is_a_part_of_the_whole() -> None:
    page = page_of(joint_map((Bound("STAGES", Op.AT_MOST, 2),)), joint_map((Bound("STAGES", Op.AT_LEAST, 2),)))
    assert [flat(part.text) for part in page.all("p", "partnames")[0].inside] == [
        "− 96 in A only", "= 96 in both", "+ 192 in B only",
    ]  # fmt: skip
    assert [part.attributes["style"] for part in page.all("span", "part")] == [
        "width:25.0%",
        "width:25.0%",
        "width:50.0%",
    ]


def test_regressions_are_listed_by_cause_with_a_command() -> None:
    part = section(page_of(*compared()), "regressions")
    assert [flat(item.text) for item in part.all("ul", "statements")[0].inside] == [
        "2 configurations fail, the nearest to A's baseline M=128: CRASHED, died (kernels/double.py:7) "
        "each compiled for B",
        "MODE=.cg fails: NO_RESOURCES compiled for B",
        "M=64, N=64 is no longer handed over: 376 registers spill, more than a thread has",
        "spills 42 → 376 (9.0 ×) at M=64, N=64",
        "VGPR 64 → 128 (2.0 ×) at M=64, N=64",
    ]
    heads, *rows = rows_of(part.all("table")[0])
    assert heads == ["#", "what", "M", "N", "MODE", "A hands it over", "in B"]
    assert rows[-1] == ["6", "registers", "64", "64", "None", "yes", "VGPR 64 → 128 (2.0 ×)"]
    assert flat(part.all("code", "command")[0].text) == "gluonmap explain b.json M=128"


def test_a_value_is_a_cell_of_two_halves_that_opens_what_both_maps_know() -> None:
    part = section(page_of(*compared()), "values")
    cells = [(flat(cell.text), cell.attributes["aria-label"]) for cell in part.all("button", "cell")]
    assert cells[0] == ("128Δ→✗ SIGABRT", "128, A live, B crashed SIGABRT")
    assert cells[-1] == ("TrueΔ→○", "True, A live, B inert")
    tones = [mark.attributes["class"].split()[-1] for mark in part.all("button", "cell")[0].all("span", "mark")]
    assert tones == ["t-live", "t-crashed"]
    opened = part.identified(part.all("button", "cell")[0].attributes["aria-controls"])
    was, now = (flat(side.text) for side in opened.all("dl"))
    assert was == "outcome PASS effect live"
    assert now == "outcome CRASHED SIGABRT reason died kernel line kernels/double.py:7"
    assert [flat(turn.text) for turn in part.all("span", "turn")] == [
        "newly aborting", "newly aborting", "newly failing", "newly inert",
    ]  # fmt: skip
    assert flat(part.all("p", "legend")[0].text) == "○ inert Δ live ✗ crashed ↑ over a resource limit"


def test_knobs_have_both_classes() -> None:
    rows = rows_of(section(page_of(*compared()), "knobs").all("table")[0])
    assert rows[1:] == [["FLAG", "live", "inert", "live → inert A: by hand B: by hand"]]


def test_changed_constraints_without_effect_are_folded_away() -> None:
    gone = AnyOf((Member("M", (128,), inside=False), Member("STAGES", (1,))))
    one = joint_map((gone, Bound("M", Op.AT_MOST, 32), budget(16384)))
    part = section(page_of(one, joint_map((Bound("M", Op.AT_MOST, 32), budget(8192)))), "constraints")
    first, folded = part.all("ul", "relations")
    assert flat(first.inside[0].text).startswith("limit moved, tighter M * N * STAGES <= 16384 → 8192")
    assert flat(part.all("summary")[0].text).startswith("1 without effect on what both maps tried")
    assert flat(folded.inside[0].text).startswith("gone M != 128 or STAGES = 1")


def test_resources_are_tables_that_sort_by_growth() -> None:
    summary, pairs = section(page_of(*compared()), "resources").all("table")
    assert rows_of(summary)[1:] == [["VGPR", "1", "1", "64 → 128", "90 → 80"], ["spills", "1", "0", "42 → 376 ▲", "–"]]
    heads, *rows = rows_of(pairs)
    assert heads == ["N", "VGPR", "spills"]
    assert rows == [["64", "64 → 128", "42 → 376 ▲"], ["16", "90 → 80", "0"]]
    by = [[cell.attributes.get("data-by") for cell in row.all("td", "num")] for row in pairs.all("tr")[1:]]
    assert by == [["64", "334"], ["-10", "0"]]
    assert "sortable" in pairs.attributes["class"]


def test_a_long_list_of_pairs_is_cut_and_keeps_those_that_spill_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_changes, "MOST_ROWS", 1)
    part = section(page_of(*compared()), "resources")
    assert rows_of(part.all("table")[1])[1:] == [["64", "64 → 128", "42 → 376 ▲"]]
    assert "1 of 2 pairs, those that spill more first; the JSON has all." in flat(part.text)


def test_maps_that_say_the_same_make_a_page_that_says_so() -> None:
    page = page_of(joint_map(), joint_map())
    assert flat(page.all("p", "sentence")[0].text) == "No difference."
    assert [link.attributes["href"] for link in page.all("nav")[0].all("a")] == ["#evidence"]
    again = page_of(joint_map(), replace(joint_map(), triton="3.6.0"))
    assert flat(again.all("p", "sentence")[0].text) == "No difference but the circumstances."
    assert rows_of(again.all("table", "circumstances")[0])[1:] == [["Triton", "3.9.0", "3.6.0"]]


def test_a_baseline_that_fails_and_maps_of_single_values_make_a_page() -> None:
    failing = replace(single_map(), outcome="REJECTED", reason="no such layout", knobs={}, stage="front end")
    page = page_of(single_map(), failing)
    assert flat(page.all("p", "sentence")[0].text) == "▲ Regression: the baseline fails."
    assert "Neither map knows all knobs together" in flat(page.text)


def test_texts_of_others_become_nothing_but_text_on_the_page() -> None:
    plain, hostile = (page_of(*with_texts(said), (said, said)) for said in ("x", HOSTILE_MARKUP))
    assert [element.tag for element in hostile.all()] == [element.tag for element in plain.all()]
    assert hostile.text.count(visible(HOSTILE_MARKUP)) > 8
    assert not any(c in hostile.text for c in "\x1b\x00\u202e")


PAIRS = (
    ("cdna3/gemm_bf16.gfx942.json", "cdna4/gemm_bf16.gfx950.json"),
    ("cdna4/gemm_bf16.gfx950.json", "cdna4/gemm_mxfp4.gfx950.json"),
    ("rmsnorm.gfx942.json", "rmsnorm.gfx950.json"),
    ("rmsnorm.gfx942.json", "rmsnorm.sm_90.json"),
)


@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_pages_of_committed_maps_are_well_formed_and_small(names: tuple[str, str]) -> None:
    data = diff_page.render(difference(*map(committed, names)), names)
    page = read(data)
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    wanted = [e.attributes[n] for e in page.all() for n in ("aria-controls", "aria-labelledby") if n in e.attributes]
    wanted += [link.attributes["href"].removeprefix("#") for link in page.all("nav")[0].all("a")]
    assert set(wanted) <= set(ids)
    assert len(data) < 300_000


@pytest.mark.long
def test_the_same_maps_give_the_same_bytes_under_another_hash_seed() -> None:
    program = f"""if True:
        import hashlib, pathlib
        from gluonmap.model import codec
        from gluonmap.diff.comparison import difference
        from gluonmap.report.html import diff_page
        for names in {PAIRS}:
            found = difference(*(codec.read_map(pathlib.Path("reports") / name) for name in names))
            print(hashlib.sha256(diff_page.render(found, names)).hexdigest())
    """
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env={**os.environ, "PYTHONHASHSEED": "77"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = [diff_page.render(difference(*map(committed, names)), names) for names in PAIRS]
    assert done.stdout.split() == [hashlib.sha256(data).hexdigest() for data in here]
