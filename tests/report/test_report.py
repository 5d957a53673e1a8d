"""What the reports say, and that hostile text in a map cannot break them."""

from __future__ import annotations

import html
import io
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from maps import BASELINE as DOUBLE
from maps import BUDGET, constraint, joint_map, tried
from markdown_it import MarkdownIt
from report_maps import (
    ABORTED,
    BASE,
    MXFP4,
    failed,
    knob,
    worked,
)
from rich.cells import cell_len
from rich.console import Console

from gluonmap.model.candidate import Value
from gluonmap.model.joint_map import UNCOMPARED, Inertness
from gluonmap.model.knobs import Effect, KnobClass
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.model.verdict import Resources
from gluonmap.report import joint_statements, markdown, terminal, terminal_pieces
from gluonmap.report.map_header import UNSTABLE
from gluonmap.report.marks import CLASS_COLOURS, EFFECT_MARKS, OUTCOME_MARKS, value_mark
from gluonmap.report.plain_text import first_line, shorten, value_label, visible
from gluonmap.report.resources import resource_figures
from gluonmap.report.sentences import map_sentence
from gluonmap.report.tables import program_rows

# --- a map of an mxfp4 GEMM, made up from what its real one looks like ------------------------------------------------

TOO_SMALL = "basis 128 of registers needs BLOCK_SIZE_M > 128"


NVIDIA = Resources(128, 204_208, 168, spills=24, scratch_bytes=None, tensor_columns=None, code_bytes=9_216)


def mixed(**classes: tuple[KnobClass, Value]) -> SpaceMap:
    """A map whose knobs have these classes and baselines; live and bounded ones have a live value left."""
    knobs = {}
    for name, (kind, baseline) in classes.items():
        live = [worked(f"other_{name}", Effect.LIVE)] if kind in {KnobClass.LIVE, KnobClass.BOUNDED} else []
        knobs[name] = knob(kind, baseline, "", worked(baseline, Effect.BASELINE), *live)
    return msgspec.structs.replace(
        MXFP4, knobs=knobs, baseline={name: baseline for name, (_, baseline) in classes.items()}, unanswered=0
    )


def printed(space: SpaceMap, width: int = 80, **options: object) -> str:
    file = io.StringIO()
    settings = {"force_terminal": False, "color_system": None} | options
    terminal.render(space, Console(file=file, width=width, **settings))  # type: ignore[arg-type]
    return file.getvalue()


def section(text: str, title: str) -> list[str]:
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(title))
    return lines[start + 1 : lines.index("", start) if "" in lines[start:] else None]


# --- marks ------------------------------------------------------------------------------------------------------------


def test_every_outcome_and_every_effect_has_a_mark_of_its_own() -> None:
    assert set(OUTCOME_MARKS) == set(Outcome)
    assert set(EFFECT_MARKS) == set(Effect)
    for table in (OUTCOME_MARKS.values(), EFFECT_MARKS.values()):
        assert len({mark.glyph for mark in table}) == len({mark.word for mark in table}) == len(table)


def test_every_glyph_is_one_column_wide_and_has_an_ascii_stand_in() -> None:
    for mark in (*OUTCOME_MARKS.values(), *EFFECT_MARKS.values()):
        assert cell_len(mark.glyph) == 1
        assert mark.glyph.translate(terminal_pieces._ASCII).isascii()


def test_every_class_has_a_colour_and_every_outcome_a_verb_phrase() -> None:
    assert set(CLASS_COLOURS) == set(KnobClass)
    assert all(outcome.info.phrase and outcome.info.plural for outcome in Outcome)


@pytest.mark.parametrize(
    ("outcome", "effect", "glyph"),
    [
        ("PASS", Effect.LIVE, "Δ"),
        ("CRASHED", Effect.ABORTING, "✗"),
        ("HUNG", Effect.UNKNOWN, "∞"),
        ("WRONG", Effect.LIVE, "≠"),
        ("SKIPPED", Effect.LIVE, "Δ"),
        ("SKIPPED", Effect.UNKNOWN, "–"),
        ("unknown", Effect.UNKNOWN, "?"),
        ("SOMETHING_NEWER", Effect.ABORTING, "✗"),
    ],
)
def test_a_failing_outcome_is_shown_before_the_effect(outcome: str, effect: Effect, glyph: str) -> None:
    assert value_mark(ValueMap(1, outcome, effect)).glyph == glyph


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        ("None", "'None'"),
        ("", "''"),
        (True, "True"),
        (1, "1"),
        (1.0, "1.0"),
        ("1", "'1'"),
        (".cg", ".cg"),
        ("a b", "'a b'"),
        ("BlockedLayout([1, 8], [32, 2])", "BlockedLayout([1, 8], [32, 2])"),
        ("x\x1b[2J", "x\\x1b[2J"),
    ],
)
def test_labels_tell_values_apart(value: Value, text: str) -> None:
    assert value_label(value) == text


# --- the sentence -----------------------------------------------------------------------------------------------------


def test_the_sentence_counts_what_matters_and_names_the_rest() -> None:
    assert map_sentence(MXFP4) == (
        "4 of 12 knobs matter on gfx950; BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K and num_warps are pinned at 256, "
        "256, 256 and 8; NUM_KSPLIT is bounded to 1 and 2; num_stages, matrix_instr_nonkdim and kpack change nothing "
        "alone; "
        "xcd_remap is unknown; 3 candidates were not asked."
    )


PINNED, BOUNDED, INERT, LIVE, UNKNOWN = (
    KnobClass.PINNED,
    KnobClass.BOUNDED,
    KnobClass.INERT,
    KnobClass.LIVE,
    KnobClass.UNKNOWN,
)


@pytest.mark.parametrize(
    ("space", "text"),
    [
        (mixed(), "gemm_mxfp4 has no knob to turn on gfx950."),
        (mixed(a=(LIVE, 1)), "The only knob matters on gfx950."),
        (mixed(a=(INERT, 1)), "The only knob does not matter on gfx950; a changes nothing."),
        (mixed(a=(PINNED, None)), "The only knob does not matter on gfx950; a is pinned at None."),
        (mixed(a=(UNKNOWN, 1)), "The only knob is not known to matter on gfx950; a is unknown."),
        (mixed(a=(LIVE, 1), b=(LIVE, 1)), "Both knobs matter on gfx950."),
        (mixed(a=(LIVE, 1), b=(LIVE, 1), c=(LIVE, 1)), "All 3 knobs matter on gfx950."),
        (mixed(a=(LIVE, 1), b=(INERT, 1)), "1 of 2 knobs matters on gfx950; b changes nothing alone."),
        (mixed(a=(INERT, 1), b=(INERT, 1)), "Neither of the 2 knobs matters on gfx950; a and b change nothing alone."),
        (
            mixed(a=(PINNED, 64), b=(PINNED, 64), c=(PINNED, 64)),
            "None of the 3 knobs matters on gfx950; a, b and c are pinned at 64.",
        ),
        (
            mixed(a=(UNKNOWN, 1), b=(INERT, 1), c=(UNKNOWN, 1)),
            "None of the 3 knobs is known to matter on gfx950; b changes nothing alone; a and c are unknown.",
        ),
        (mixed(a=(BOUNDED, 1), b=(LIVE, 1)), "Both knobs matter on gfx950; a is bounded to 1 and other_a."),
        (
            mixed(a=(BOUNDED, 1), b=(BOUNDED, 1), c=(BOUNDED, 1), d=(BOUNDED, 1)),
            "All 4 knobs matter on gfx950; a, b, c and d are bounded.",
        ),
        (
            ABORTED,
            (
                "The baseline of gemm_mxfp4 crashes the compiler on gfx942 at kernels/cdna4/gemm_mxfp4.py:101: Invalid "
                "basis 128 for a dimension of size 64; no knob can be judged against it; repeat it by hand with: "
                "python -m gluonmap.worker baseline.json"
            ),
        ),
        (
            msgspec.structs.replace(ABORTED, outcome="unknown", reason="", line=None, repeat=""),
            "The baseline of gemm_mxfp4 got no answer on gfx942; no knob can be judged against it.",
        ),
    ],
)
def test_the_sentence_is_well_formed_for_every_mix(space: SpaceMap, text: str) -> None:
    assert map_sentence(space) == text


def test_a_knob_that_changed_nothing_where_it_was_compared_does_not_count_as_one_that_matters() -> None:
    def of(*inertness: Inertness) -> str:
        space = joint_map(inertness=inertness)
        knobs = {
            name: msgspec.structs.replace(each, knob_class=INERT if name in ("FLAG", "MODE") else LIVE)
            for name, each in space.knobs.items()
        }
        return map_sentence(msgspec.structs.replace(space, knobs=knobs))

    flag = Inertness("FLAG", UNCOMPARED, "words", 0, 6)
    mode = Inertness("MODE", UNCOMPARED, "words", 0, 1)
    head = "3 of 5 knobs matter on gfx950; "
    assert of(flag, Inertness("MODE", "", "words", 0, 9)) == (
        f"{head}FLAG changed nothing where compared (6 pairs); MODE changes nothing."
    )
    assert of(flag, mode) == f"{head}FLAG and MODE changed nothing where compared (1 to 6 pairs each)."
    # "sometimes": together with others it changed a program, though no comparison of it alone did.
    assert of(flag, Inertness("MODE", "sometimes", "words", 0, 1)) == (
        "4 of 5 knobs matter on gfx950; MODE matters with other values of the other knobs; "
        "FLAG changed nothing where compared (6 pairs)."
    )


def test_message_and_context_beside_a_constraint_are_those_of_the_example() -> None:
    failing = {**DOUBLE, "M": 128, "N": 128, "STAGES": 2}
    budget = msgspec.structs.replace(
        constraint(BUDGET, reason="131,072 bytes > 65,536"),
        line="k.py:7",
        failing_example=failing,
        passing_example={**failing, "STAGES": 1, "FLAG": True},
    )
    asked = [tried({"M": 128, "N": 128, "STAGES": 2}, "NO_RESOURCES", reason="65,537 bytes > 65,536", line="k.py:8")]
    space = joint_map(constraints=[budget], tried=asked)
    assert space.joint
    (line,) = joint_statements.constraints(space, space.joint)
    assert line.details == (
        "learned (line 7)",
        "NO_RESOURCES 65,537 bytes > 65,536 (line 8)",
        "for example STAGES = 2, FLAG = False fails where STAGES = 1, FLAG = True passes, both with M = 128, N = 128",
    )


# --- the terminal -----------------------------------------------------------------------------------------------------


def test_the_header_names_kernel_target_arguments_and_launch() -> None:
    one, tiles = "i32 equal to 1:", "BLOCK_SIZE_M=256, BLOCK_SIZE_N=256, BLOCK_SIZE_K=256"
    assert printed(MXFP4, 120).splitlines()[:8] == [
        "kernel     kernels/cdna4/gemm_mxfp4.py:gemm_mxfp4",
        "target     gfx950 (cdna4), Triton 3.9.0",
        f"arguments  *u8: a_ptr, b_ptr, a_scales_ptr, b_scales_ptr; *bf16: c_ptr; i32 divisible by 16: M, N, K; {one}",
        "           stride_k",
        "launch     M=4096, N=4096, K=8192; grid 256 × 1 × 1",
        f"baseline   {tiles}, GROUP_SIZE_M=2, NUM_KSPLIT=1, cache_modifier=None,",
        "           num_warps=8, num_stages=2, waves_per_eu=0, matrix_instr_nonkdim=32, kpack=1, xcd_remap=''",
        "resources  VGPR 256   AGPR 128   SGPR 56   spills 0   SGPR spills 0   scratch 0 B   LDS 65,536 B   "
        "waves/SIMD 1",
    ]


def test_knobs_stand_by_class_with_every_value_marked() -> None:
    rows = [line for line in section(printed(MXFP4, 120), "Knobs") if not line.startswith((" ", "-", "knob"))]
    assert [re.split(r"\s{3,}", row)[:4] for row in rows[:12]] == [
        ["BLOCK_SIZE_M", "pinned", "256", "64 ✗SIGABRT  128 ✗  256 ●  512 ✗"],
        ["BLOCK_SIZE_N", "pinned", "256", "64 ✗SIGABRT  128 ✗  256 ●  512 ✗"],
        ["BLOCK_SIZE_K", "pinned", "256", "64 ✗SIGABRT  128 ✗  256 ●  512 ✗"],
        ["num_warps", "pinned", "8", "4 ⊘RuntimeError  8 ●  16 ⊘"],
        ["NUM_KSPLIT", "bounded", "1", "1 ●  2 ⌂  64 ↑budget  128 ∞deadline"],
        ["GROUP_SIZE_M", "live", "2", "1 Δ  2 ●  4 Δ ≡ 8 Δ"],
        ["cache_modifier", "live", "None", "None ● ≡ '' ○  .cg Δ"],
        ["waves_per_eu", "live", "0", "0 ● ≡ 1 ○  2 Δ  4 Δ"],
        ["num_stages", "inert", "2", "1 ○ ≡ 2 ● ≡ 3 ○ ≡ 4 ○"],
        ["matrix_instr_nonkdim", "inert", "32", "0 ○ ≡ 16 ○ ≡ 32 ●"],
        ["kpack", "inert", "1", "1 ● ≡ 2 ○"],
        ["xcd_remap", "unknown", "''", "'' ●  on ?"],
    ]


def test_values_that_fail_alike_share_a_row_with_line_and_literal() -> None:
    assert section(printed(MXFP4), "Why values fail")[2:5] == [
        "BLOCK_SIZE_M   ✗ CRASHED        Invalid basis 128 for a dimension of size 64",
        "64             SIGABRT          gemm_mxfp4.py:101",
        "               (front end)      basis 128 of registers needs BLOCK_SIZE_M > 128",
    ]
    assert section(printed(MXFP4), "Why values fail")[-9:-6] == [
        "num_warps      ⊘ REJECTED       Result has an invalid layout:",
        "4, 16          RuntimeError     #linear<\\x1b[31m|\\x1b[0m>",
        "               (front end)      gemm_mxfp4.py:88",
    ]


def test_the_baselines_program_comes_first_and_spilled_ones_say_so() -> None:
    rows = program_rows(MXFP4)
    assert (rows[0].digest, rows[0].baseline, rows[0].changes) == ("b45e11aa", True, ("grid (NUM_KSPLIT)",))
    assert rows[0].moves[:3] == ("NUM_KSPLIT = 2", "cache_modifier = ''", "waves_per_eu = 1")
    assert [(row.moves, row.changes) for row in rows[1:]] == [
        (("GROUP_SIZE_M = 1",), ("instructions",)),
        (("GROUP_SIZE_M = 4, 8",), ("instructions",)),
        (("cache_modifier = .cg",), ("instructions",)),
        (("waves_per_eu = 2",), ("descriptor only",)),
        (("waves_per_eu = 4",), ("instructions",)),
    ]
    assert [f.text for f in rows[-1].figures if f.alarm] == ["42", "2", "172 B"]


def test_digests_are_as_long_as_it_takes_to_tell_them_apart() -> None:
    values = (worked(1, Effect.BASELINE, "aaaaaaaaaa01"), worked(2, Effect.LIVE, "aaaaaaaaaa02"))
    space = msgspec.structs.replace(MXFP4, digest="aaaaaaaaaa01", knobs={"a": knob(LIVE, 1, "", *values)})
    assert [row.digest for row in program_rows(space)] == ["aaaaaaaaaa01", "aaaaaaaaaa02"]


def test_nvidia_programs_are_told_in_registers_and_shared_memory() -> None:
    assert [(f.head, f.text, f.alarm) for f in resource_figures("sm_90", NVIDIA)] == [
        ("registers", "168", False),
        ("spills", "24 B", True),
        ("shared", "204,208 B", False),
        ("threads", "128", False),
        ("code", "9,216 B", False),
    ]


def test_faults_warnings_notes_and_unanswered_candidates_are_told() -> None:
    text = printed(MXFP4)
    assert section(text, "No answer")[2:] == [
        "xcd_remap      ? unknown        exit status 255, no evidence",
        "on",
    ]
    assert section(text, "Passed with an error message") == [" - cache_modifier = .cg: error: couldn't allocate <reg>"]
    assert section(text, "Fixed parameters") == [
        " - EVEN_K, GRID_MN: computed by a heuristic",
        " - dtype: names a type",
    ]
    assert "3 planned candidates not asked: this map is incomplete." in text


def test_commands_to_repeat_are_never_broken_into_lines() -> None:
    command = "python -m gluonmap.worker " + "x" * 200 + ".json"
    assert f"   {command}\n" in printed(msgspec.structs.replace(MXFP4, repeat=command))


def test_an_unstable_baseline_is_told_above_the_tables() -> None:
    text = printed(msgspec.structs.replace(MXFP4, stable=False), 120)
    assert text.index(UNSTABLE) < text.index("Knobs (")


def test_a_failing_baseline_says_what_where_why_and_what_next() -> None:
    assert printed(ABORTED).splitlines()[4:] == [
        "",
        "✗ CRASHED: the baseline crashes the compiler.",
        "where  kernels/cdna4/gemm_mxfp4.py:101",
        "why    Invalid basis 128 for a dimension of size 64.",
        "       second line",
        "next   Start from a configuration that passes: give another baseline, or repair",
        "       the kernel, and probe again.",
        "",
        "Repeat by hand",
        " baseline",
        "   python -m gluonmap.worker baseline.json",
    ]


@pytest.mark.parametrize("width", [80, 100, 120, 160, 240])
def test_no_line_is_too_wide_and_no_word_is_lost(width: int) -> None:
    text = printed(msgspec.structs.replace(MXFP4, repeat=""), width)
    body = text[: text.index("Repeat by hand")]
    assert max(map(cell_len, body.splitlines())) <= width
    assert "…" not in body
    for row in program_rows(MXFP4):
        for shown in (row.digest, *row.moves, *row.changes):
            assert shown in body
    for shown in ("30,112 B", "172 B", "NO_RESOURCES", "matrix_instr_nonkdim", "divisible"):
        assert shown in body


def test_output_that_is_no_terminal_is_plain() -> None:
    text = printed(MXFP4)
    assert "\x1b" not in text
    assert not re.search("[\u2500-\u257f]", text)
    assert all(line == line.rstrip() for line in text.splitlines())


def test_no_colour_is_used_where_none_is_wanted() -> None:
    wanted = printed(MXFP4, force_terminal=True, color_system="standard")
    unwanted = printed(MXFP4, force_terminal=True, color_system="standard", no_color=True)
    assert "\x1b[31m" in wanted
    assert not re.search(r"\x1b\[[\d;]*3[0-7]", unwanted)


def test_a_terminal_that_knows_only_ascii_gets_ascii() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    terminal.render(MXFP4, Console(file=file, width=120, force_terminal=False))
    file.seek(0)
    text = file.read()
    assert "64 XSIGABRT  128 X  256 *  512 X" in text
    assert "0 o = 16 o = 32 *" in text


# --- Markdown ---------------------------------------------------------------------------------------------------------


def cells(page: str) -> list[list[str]]:
    """The cells of every table row as a reader sees them."""
    rows = re.findall(r"<tr>(.*?)</tr>", MarkdownIt("commonmark").enable("table").render(page), re.DOTALL)
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[html.unescape(re.sub(r"</?(?:code|strong|br)\s*/?>", "", cell)) for cell in row] for row in found]


def test_markdown_has_the_sections_of_the_terminal_in_the_same_order() -> None:
    assert re.findall(r"^#+ .*", re.sub("```.*?```", "", markdown.render(MXFP4), flags=re.DOTALL), re.MULTILINE) == [
        "# `gemm_mxfp4` on gfx950 (cdna4)",
        "## Knobs (4 pinned, 1 bounded, 3 live, 3 inert, 1 unknown)",
        "## Why values fail",
        "## Programs (6 distinct)",
        "## Demands read from the source",
        "## Notes",
        "## Passed with an error message",
        "## Fixed parameters",
        "## Not probed",
        "## No answer (never evidence about the kernel)",
        "## Repeat by hand",
    ]


def test_markdown_rows_read_like_this() -> None:
    page = markdown.render(MXFP4)
    assert re.sub(" +", " ", page).count("| `num_warps` | pinned | `8` | `4` ⊘ RuntimeError, `8` ●, `16` ⊘ |") == 1
    assert ["num_warps", "4, 16", "⊘ REJECTED RuntimeError (front end)"] in [row[:3] for row in cells(page)]
    assert "**42**" in page


def test_every_value_that_did_not_pass_has_its_command_in_one_collapsed_block() -> None:
    page = markdown.render(MXFP4)
    block = page[page.index("<details>") : page.index("</details>")]
    assert "Commands for the 14 values that did not pass" in block
    assert (
        "# num_warps = 16: REJECTED RuntimeError\npython -m gluonmap.worker probes/gemm_mxfp4/gfx950/16.json" in block
    )
    assert block.count("python -m") == 14


def test_a_failing_baseline_has_its_report_too() -> None:
    page = markdown.render(ABORTED)
    assert "**✗ CRASHED: the baseline crashes the compiler.**" in page
    assert "- where: `kernels/cdna4/gemm_mxfp4.py:101`\n- why: `Invalid basis 128 for a dimension of size 64.`" in page
    assert page.endswith("```sh\npython -m gluonmap.worker baseline.json\n```\n")


def test_the_same_map_gives_the_same_bytes_after_a_round_trip() -> None:
    again = msgspec.json.decode(msgspec.json.encode(MXFP4), type=SpaceMap)
    assert markdown.render(again).encode() == markdown.render(MXFP4).encode()
    assert printed(again) == printed(MXFP4)


def test_long_messages_end_in_an_ellipsis_in_tables() -> None:
    space = with_message("m" * 500)
    messages = [row[3] for row in cells(markdown.render(space)) if row[0] == "a" and len(row) == 6]
    assert messages == ["m" * 199 + "…"] * 2


def with_message(text: str) -> SpaceMap:
    bad = failed(2, "REJECTED", text, text, text, 7, because=(text,), repeat=text, file=text)
    values = (worked(1, Effect.BASELINE, warnings=(text,)), bad, worked(text, Effect.LIVE, "f00", detail=text))
    return SpaceMap(
        kernel="k",
        file="k.py",
        target="gfx950",
        triton="3.9.0",
        specialisation={"x": text},
        baseline={"a": 1},
        knobs={"a": knob(BOUNDED, 1, text, *values, ValueMap(3, "unknown", Effect.UNKNOWN, text))},
        digest=BASE,
        fixed={"b": text},
        not_probed={"c": text},
        literals=(text,),
        notes=(text,),
        repeat=text,
    )


TAGS = {"h1", "h2", "ul", "li", "p", "strong", "code", "pre", "br", "details", "summary"}
TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
HOSTILE = "a|b \\| `c` ``` <script>&amp; *d* __e__ [f](g) ~~h~~ $i$ \x1b]8;;x\x07 \u202e\u2028 </details> <!-- \ud800"


@given(
    st.one_of(st.text(alphabet="a|\\`<>&*_[]()~$#-+=!:. \n\r\t\x1b\u202e", max_size=60), st.text(), st.just(HOSTILE))
)
def test_no_text_of_a_map_breaks_a_report(text: str) -> None:
    space = with_message(text)
    page = markdown.render(space)
    page.encode()
    message = shorten(first_line(text))
    rows = [row for row in cells(page) if row and row[0] == "a"]
    assert [len(row) for row in rows] == [5, 6, 6]
    assert rows[1][3].split() == message.split()
    assert rows[1][5].split() == visible(text).split()
    for shown in (page, markdown.render(msgspec.structs.replace(ABORTED, reason=text, repeat=text, notes=(text,)))):
        assert set(re.findall(r"</?([a-z0-9]+)", MarkdownIt("commonmark").enable("table").render(shown))) <= TAGS
    plain = printed(space)
    plain.encode()
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2028\u2029]", plain + page)


def test_hostile_text_is_shown_as_text() -> None:
    assert markdown.code("a|b`<&\x1b[31m\n") == "<code>a&#124;b&#96;&lt;&amp;&#92;x1b&#91;31m&#92;n</code>"
    assert markdown.text("# a_b _c_ <d>") == "\\# a_b &#95;c&#95; &lt;d&gt;"
    assert visible("\x1b[31mred\x00\u202e\ud800é✗") == "\\x1b[31mred\\x00\\u202e\\ud800é✗"
