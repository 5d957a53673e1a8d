"""The table of programs with their resources, and the configurations that the compiler did not finish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gluonmap.model import targets
from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import Joint
from gluonmap.model.outcomes import Outcome
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Figures, Resources, Timing
from gluonmap.model.wording import listed
from gluonmap.query.feasibility import moves_of
from gluonmap.query.observations import observations
from gluonmap.report import run_figures
from gluonmap.report.html import knob_table
from gluonmap.report.knobs import knobs_by_class
from gluonmap.report.marks import fails
from gluonmap.report.plain_text import config_text, plural, value_label
from gluonmap.report.resources import Figure

FIRST = ("spills", "SGPR spills", "scratch")
"""Heads of the figures that come first: they cost speed for sure."""
MOST_ROWS = 400
"""Number of programs that a page lists; those that spill come first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A knob's value in one program; `moved`: it is not the baseline's."""

    text: str
    moved: bool


@dataclass(frozen=True, slots=True)
class ProgramEntry:
    """A program as a row of the table."""

    number: int
    digest: str
    baseline: bool
    settings: tuple[Setting, ...]
    figures: tuple[Figure, ...]
    same: str
    time: str
    alarm: bool


@dataclass(frozen=True, slots=True)
class ProgramListing:
    """The programs that were compiled to machine code and passed."""

    knobs: tuple[str, ...]
    """Knobs that differ between programs."""
    heads: tuple[str, ...]
    rows: tuple[ProgramEntry, ...]
    total: int
    idle: str
    """Knobs that never changed a program."""
    fixed: str
    """Values of the knobs that do not differ."""
    common: str
    """Figures that all programs share."""
    summary: str
    counted: bool
    """The number of asked configurations is known for each program."""
    timed: bool
    counts: str
    """Meaning of the figures of a run on the CPU; "": there was none."""
    remarks: tuple[str, ...]
    """Programs that are notably worse or better than the baseline in them."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    config: Config
    digest: str
    resources: Resources | None
    same: int
    timing: Timing | None
    counted: Figures | None = None


def table(space: SpaceMap) -> ProgramListing | None:
    """Return the distinct programs, from the joint part if it has any, else from single values; None where none."""
    entries = _together(space, space.joint) if space.joint and space.joint.programs else _alone(space)
    if not entries:
        return None
    idle = _idle(space)
    knobs = tuple(n for n in space.baseline if n not in idle and len({repr(e.config[n]) for e in entries}) > 1)
    base = space.measured.figures if space.measured else None
    counted = run_figures.without_empty_figures([run_figures.run_figures(entry.counted, base) for entry in entries])
    figures = [knob_table.figures(space.target, e.resources) + more for e, more in zip(entries, counted, strict=True)]
    heads = _heads(figures)
    differ = tuple(h for h in heads if len({_of(row, h).text for row in figures}) > 1 or len(entries) == 1)
    length = _short_digest_length([entry.digest for entry in entries])
    rows = [
        ProgramEntry(
            number,
            entry.digest[:length],
            entry.digest == space.digest and entry.config == space.baseline,
            tuple(Setting(value_label(entry.config[n]), _moved(space, entry.config, n)) for n in knobs),
            tuple(_of(row, head) for head in differ),
            f"{entry.same:,}",
            _time(entry.timing),
            any(figure.alarm for figure in row),
        )
        for number, (entry, row) in enumerate(zip(entries, figures, strict=True), 1)
    ]
    shown = sorted(sorted(rows, key=lambda row: not row.alarm)[:MOST_ROWS], key=lambda row: row.number)
    still = {n: v for n, v in space.baseline.items() if n not in knobs and n not in idle}
    return ProgramListing(
        knobs=knobs,
        heads=differ,
        rows=tuple(shown),
        total=len(rows),
        fixed=config_text(still),
        idle=listed(sorted(idle, key=list(space.baseline).index)),
        common=", ".join(f"{h} {_of(figures[0], h).text}" for h in heads if h not in differ),
        summary=_summary(space, figures),
        counted=any(entry.same > 1 for entry in entries),
        timed=any(row.time for row in rows),
        counts=run_figures.figure_legend([figure.head for more in counted for figure in more]),
        remarks=tuple(run_figures.remarks([(_moves(space, e), e.counted) for e in entries], base)),
    )


def _moves(space: SpaceMap, entry: _Compiled) -> str:
    return config_text(moves_of(space, entry.config))


def _idle(space: SpaceMap) -> set[str]:
    return {item.knob for item in space.joint.inertness if item.condition == ""} if space.joint else set()


def _together(space: SpaceMap, joint: Joint) -> list[_Compiled]:
    return [
        _Compiled({**space.baseline, **p.config}, p.digest, p.resources, p.same, p.timing, p.figures)
        for p in joint.programs
    ]


def _alone(space: SpaceMap) -> list[_Compiled]:
    found: dict[str, _Compiled] = {}
    if space.digest:
        own = space.measured.figures if space.measured else None
        found[space.digest] = _Compiled(space.baseline, space.digest, space.resources, 1, None, own)
    for name, knob in knobs_by_class(space):
        for value in knob.values:
            if value.digest and not fails(value):
                config = {**space.baseline, name: value.value}
                own = value.measured.figures if value.measured else None
                found.setdefault(value.digest, _Compiled(config, value.digest, value.resources, 1, None, own))
    return list(found.values())


def _moved(space: SpaceMap, config: Config, name: str) -> bool:
    return not same(config[name], space.baseline[name])


def _heads(rows: Sequence[Sequence[Figure]]) -> list[str]:
    longest = sorted((tuple(figure.head for figure in row) for row in rows), key=len, reverse=True)
    found = list(dict.fromkeys(head for heads in longest for head in heads))
    return sorted(found, key=lambda head: head not in FIRST)


def _of(row: Sequence[Figure], head: str) -> Figure:
    return next((figure for figure in row if figure.head == head), Figure(head, "–"))


def _short_digest_length(digests: list[str]) -> int:
    distinct = set(digests)
    return next((n for n in range(8, 65) if len({d[:n] for d in distinct}) == len(distinct)), 64)


def _time(timing: Timing | None) -> str:
    return f"{timing.median_us:,.1f} ± {timing.spread / 2:.1%}" if timing else ""


def _summary(space: SpaceMap, rows: Sequence[Sequence[Figure]]) -> str:
    """Return the number of programs that spill and the largest spill, by kind."""
    found = []
    for head, verb, what in (
        ("spills", "spill", ""),
        ("SGPR spills", "spill", " SGPRs"),
        ("scratch", "use", " scratch"),
    ):
        spilling = [figure for row in rows if (figure := _of(row, head)).alarm]
        if spilling:
            worst = max(spilling, key=lambda figure: int(figure.text.split()[0].replace(",", "")))
            does = f"{verb}s" if len(spilling) == 1 else verb
            found.append(f"{len(spilling):,} {does}{what}, up to {worst.text}")
    if not found:
        return "None of them spills a register." if any(_of(row, "spills").text != "–" for row in rows) else ""
    return f"Of {plural(len(rows), 'program')} {'; '.join(found)}."


# --- compile bombs ---------------------------------------------------------------------------------------------------


def endless(space: SpaceMap) -> list[str]:
    """Return the values and then the configurations that the compiler did not finish before the deadline."""
    found = [
        f"{name} = {value_label(value.value)}"
        for name, knob in knobs_by_class(space)
        for value in knob.values
        if value.outcome == Outcome.HUNG
    ]
    hung = (moves_of(space, item.config) for item in observations(space).joint if item.outcome == Outcome.HUNG)
    return [*found, *(config_text(moves) for moves in hung if len(moves) > 1)]


def limit(space: SpaceMap) -> str:
    """Return the target's limits, as a reader of the table needs them; "" for a target that only others know."""
    target = targets.named(space.target)
    if target is None:
        return ""
    parts = [f"{'LDS' if target.vendor == 'AMD' else 'shared memory'} {target.shared_bytes:,} B"]
    parts.append(f"{target.threads:,} threads")
    if target.registers:
        parts.append(f"{target.registers:,} registers")
    if target.vgprs_per_simd:
        parts.append(f"{target.vgprs_per_simd} VGPRs for the waves of a SIMD, {target.waves_per_simd} waves at most")
    return f"Limits of {target.name}: {', '.join(parts)}"
