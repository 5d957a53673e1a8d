"""The page of one map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gluonmap.joint import Joint
from gluonmap.model import Outcome
from gluonmap.raced import RaceRecord
from gluonmap.report import measured, together, words
from gluonmap.report.html import cells, drawing, programs, racing, relations, shell
from gluonmap.space import SpaceMap


@dataclass(frozen=True, slots=True)
class Bar:
    """One number of the funnel; `width` in per cent of the widest, on a logarithmic scale."""

    name: str
    number: str
    note: str
    width: float


def render(space: SpaceMap, races: Sequence[RaceRecord] = (), *, home: str = "", warnings: Sequence[str] = ()) -> bytes:
    """Return the page of a map, with the races that were run of it.

    `home` is where its link to the index over many maps leads, if there is one; `warnings` are said at its top.
    """
    context = _common(space) | {"home": home, "warnings": warnings}
    if space.outcome != Outcome.PASS:
        return shell.page("failing.html.jinja", **context, facts=_baseline_facts(space), sections=[])
    joint = space.joint
    told = _together(space, joint) if joint is not None else {}
    found: dict[str, Any] = {
        "rows": cells.rows(space),
        "legend": _legend(space),
        "failures": words.failures(space),
        "tones": cells.TONES,
        "unjudged": words.unjudged(space),
        "table": programs.table(space),
        "endless": programs.endless(space),
        "limits": programs.limit(space),
        "races": [racing.race(space, record) for record in races],
        "joint": joint,
        "told": told,
        "bars": bars(space),
        "ticks": _ticks(space),
        "literals": space.literals,
        "notes": space.notes,
        "passed_with": words.warnings(space),
        "fixed": words.grouped(space.fixed),
        "not_probed": words.grouped(space.not_probed),
        "unanswered": space.unanswered,
        "commands": together.commands(space),
        "repeats": words.repeats(space),
    }
    return shell.page("map.html.jinja", **context, **found, sections=_sections(context, found))


def _common(space: SpaceMap) -> dict[str, Any]:
    """What the pages of passing and of failing baselines have in common."""
    device = measured.title(space)
    return {
        "space": space,
        "target": words.target(space),
        "sentence": words.sentence(space),
        "classes": words.count_line(space),
        "unstable": f"{words.UNSTABLE}." if space.stable is False else "",
        "header": _header(space),
        "takes": cells.figures(space.target, space.resources),
        "device": device,
        "measured": measured.rows(space) if device else [],
        "measured_heads": measured.HEADS,
        "measured_terms": list(measured.terms(space)) if device else [],
    }


def _header(space: SpaceMap) -> list[tuple[str, str, str]]:
    """What the map holds for: name, text, style of the text."""
    program = words.identity(space) if space.outcome == Outcome.PASS else ""
    found = [
        ("arguments", words.specialisation(space), "code"),
        ("launch", words.launch(space), "text"),
        ("baseline", words.settings(space.baseline), "code"),
        ("program", program, "text"),
        ("device", measured.title(space), "text"),
    ]
    return [item for item in found if item[1]]


def _sections(context: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, str]]:
    """Anchors and names of the sections that have something to say."""
    joint, told = found["joint"], found["told"]
    known = [
        ("knobs", "Knobs", bool(found["rows"])),
        ("failures", "Failures", bool(found["failures"] or found["unjudged"])),
        ("constraints", "Constraints", joint is not None),
        ("pairs", "Pairs", bool(told and (told["heat"] or told["same"]))),
        ("programs", "Programs", found["table"] is not None),
        ("device", "Device", bool(context["measured"])),
        ("race", "Race", bool(found["races"])),
        ("evidence", "Evidence", joint is not None),
        ("source", "Source and notes", True),
        ("commands", "Commands", bool(found["commands"] or found["repeats"] or context["space"].repeat)),
    ]
    return [(anchor, name) for anchor, name, there in known if there]


def _together(space: SpaceMap, joint: Joint) -> dict[str, Any]:
    heat, more_heat = relations.heat_maps(space)
    return {
        "asked": together.title(joint),
        "notes": together.notes(joint),
        "relations": relations.relations(space, joint),
        "beside": together.beside(joint),
        "graph": drawing.graph(space),
        "freed": together.freed(space),
        "conditions": together.conditions(space),
        "formula": together.formula(space),
        "heat": heat,
        "more_heat": more_heat,
        "same": relations.program_maps(space),
        "coverage": list(relations.coverage(joint)),
        "certificate": joint.certificate,
        "statements": [text for text in joint.certificate.statements if not _tabled(joint, text)],
        "doubts": together.doubts(joint),
        "refused": measured.refused(joint),
    }


def _tabled(joint: Joint, statement: str) -> bool:
    """The table of strata says it."""
    return any(statement.startswith((f"{s.name}:", f"{s.name} (")) for s in joint.certificate.strata)


def _legend(space: SpaceMap) -> list[tuple[str, str, str]]:
    """Glyph, word and tone of every mark that the cells use."""
    return [(glyph, word, cells.TONES.get(word, "")) for glyph, word in words.legend(space)]


def _baseline_facts(space: SpaceMap) -> list[cells.Fact]:
    """What is known of a failing baseline; its reason as it stands."""
    styles = {"why": "long", "where": "code"}
    found = [cells.Fact(name, text, styles.get(name, "text")) for name, text in words.baseline_facts(space)]
    return [cells.Fact("why", space.reason, "long") if fact.name == "why" else fact for fact in found]


# --- the funnel ------------------------------------------------------------------------------------------------------


def bars(space: SpaceMap) -> list[Bar]:
    """Return the signature, what of it is feasible, the distinct programs, and those that were compiled."""
    found = _counts(space)
    most = max((number for _, number, _ in found if number is not None), default=1)
    return [Bar(name, "" if n is None else f"{n:,}", note, _length(n, most)) for name, n, note in found]


def _counts(space: SpaceMap) -> list[tuple[str, int | None, str]]:
    knobs = words.plural(len(space.knobs), "knob")
    joint = space.joint
    if joint is None:
        product = math.prod(len(knob.values) for knob in space.knobs.values())
        return [("signature", product, f"{knobs}, turned one at a time: how they combine was not asked")]
    size = joint.sizes
    found: list[tuple[str, int | None, str]] = [("signature", size.signature, knobs)]
    if size.feasible is None:
        return [*found, ("feasible", None, "the constraints are too entangled to count"), _compiled(joint)]
    note = "every one was compiled" if size.complete else "meet all constraints"
    found.append(("feasible", size.feasible, f"{_share(size.feasible, size.signature)} of the signature; {note}"))
    if size.programs is None:
        return [*found, _compiled(joint)]
    if size.complete or len(joint.programs) >= size.programs:
        how = "counted, every feasible configuration being compiled" if size.complete else "each compiled"
        return [*found, ("programs", size.programs, f"{_share(size.programs, size.feasible)} of the feasible; {how}")]
    return [*found, ("programs", size.programs, "at most, by the rules of sameness"), _compiled(joint)]


def _compiled(joint: Joint) -> tuple[str, int | None, str]:
    return "compiled", len(joint.programs), "of these to machine code, no two alike"


def _share(part: int, whole: int) -> str:
    share = part / whole if whole else 0.0
    if share == 1 or share >= 0.1:
        return f"{share:.0%}"
    return f"{share:.2%}" if share >= 0.0005 else f"{share:.1e}"


def _length(number: int | None, most: int) -> float:
    """Per cent of the scale; one alone is still seen."""
    if not number:
        return 0.0
    return round(max(1.0, 100 * math.log10(number) / math.log10(most)), 2) if most > 1 else 100.0


def _ticks(space: SpaceMap) -> list[tuple[float, str]]:
    """Powers of ten on the funnel's scale: place in per cent, text."""
    counts = [number for _, number, _ in _counts(space) if number is not None]
    most = max(counts, default=1)
    if most <= 1 or len(counts) == 1:
        return []
    step = 1 if most < 10**7 else 2
    powers = range(0, math.floor(math.log10(most)) + 1, step)
    return [(round(100 * power / math.log10(most), 2), _power(power)) for power in powers]


def _power(power: int) -> str:
    """A power of ten, short: "100", "10 k", "1 M"."""
    unit = " kMGTP"[power // 3] if power < 18 else ""
    return f"{10 ** (power % 3)} {unit}".strip() if unit else f"1e{power}"
