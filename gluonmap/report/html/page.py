"""The page of one map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gluonmap.model.joint_map import Joint
from gluonmap.model.race_record import RaceRecord
from gluonmap.model.space_map import SpaceMap
from gluonmap.report import execution
from gluonmap.report import joint as together
from gluonmap.report.html import cells, drawing, funnel, programs, racing, relations, shell
from gluonmap.report.knobs import class_count_text
from gluonmap.report.map_header import (
    UNSTABLE,
    baseline_facts,
    launch_text,
    program_identity,
    specialisation_text,
    target_name,
)
from gluonmap.report.marks import baseline_compiled, executed_on_cpu, mark_legend
from gluonmap.report.plain_text import config_text
from gluonmap.report.sentences import map_sentence
from gluonmap.report.tables import (
    NUMBERS_UNKNOWN,
    PART_OF_THE_PROBLEM,
    PROBLEM_TERMS,
    failing_values,
    grouped_by_reason,
    repeat_commands,
    result_changing_values,
    unanswered_values,
    unexecuted_values,
    value_warnings,
)


def render(space: SpaceMap, races: Sequence[RaceRecord] = (), *, home: str = "", warnings: Sequence[str] = ()) -> bytes:
    """Return the page of a map, with the races that were run of it.

    `home` is where its link to the index over many maps leads, if there is one; `warnings` are said at its top.
    """
    context = _common(space) | {"home": home, "warnings": warnings}
    if not baseline_compiled(space):
        return shell.page("failing.html.jinja", **context, facts=_baseline_facts(space), sections=[])
    joint = space.joint
    told = _together(space, joint) if joint is not None else {}
    found: dict[str, Any] = {
        "rows": cells.rows(space),
        "legend": _legend(space),
        "failures": failing_values(space),
        "changing_title": PART_OF_THE_PROBLEM,
        "changing_terms": PROBLEM_TERMS,
        "unexecuted_title": NUMBERS_UNKNOWN,
        "tones": cells.TONES,
        "unjudged": unanswered_values(space),
        "changing": result_changing_values(space),
        "unexecuted": unexecuted_values(space),
        "table": programs.table(space),
        "endless": programs.endless(space),
        "limits": programs.limit(space),
        "races": [racing.race(space, record) for record in races],
        "joint": joint,
        "told": told,
        "bars": funnel.bars(space),
        "ticks": funnel.ticks([number for _, number, _ in funnel.counts(space) if number is not None]),
        "literals": space.literals,
        "notes": space.notes,
        "passed_with": value_warnings(space),
        "fixed": grouped_by_reason(space.fixed),
        "not_probed": grouped_by_reason(space.not_probed),
        "unanswered": space.unanswered,
        "commands": together.commands(space),
        "repeats": repeat_commands(space),
    }
    return shell.page("map.html.jinja", **context, **found, sections=_sections(context, found))


def _common(space: SpaceMap) -> dict[str, Any]:
    """What the pages of passing and of failing baselines have in common."""
    device = execution.title(space)
    return {
        "space": space,
        "target": target_name(space.target),
        "sentence": map_sentence(space),
        "classes": class_count_text(space),
        "unstable": f"{UNSTABLE}." if space.stable is False else "",
        "header": _header(space),
        "takes": cells.figures(space.target, space.resources) + cells.counted(space.measured),
        "device": device,
        "measured": [execution.cells(space, row) for row in execution.rows(space)] if device else [],
        "measured_heads": execution.shown_heads(space),
        "found": execution.findings(space),
        "found_heads": execution.FOUND_HEADS,
        "found_title": execution.FOUND,
        "measured_terms": list(execution.terms(space)) if device else [],
    }


def _header(space: SpaceMap) -> list[tuple[str, str, str]]:
    """What the map holds for: name, text, style of the text."""
    program = program_identity(space) if baseline_compiled(space) else ""
    found = [
        ("arguments", specialisation_text(space), "code"),
        ("launch", launch_text(space), "text"),
        ("baseline", config_text(space.baseline), "code"),
        ("program", program, "text"),
        ("executed" if executed_on_cpu(space) else "device", execution.title(space), "text"),
    ]
    return [item for item in found if item[1]]


def _sections(context: dict[str, Any], found: dict[str, Any]) -> list[tuple[str, str]]:
    """Anchors and names of the sections that have something to say."""
    joint, told = found["joint"], found["told"]
    known = [
        ("knobs", "Knobs", bool(found["rows"])),
        ("failures", "Failures", any(found[name] for name in ("failures", "changing", "unexecuted", "unjudged"))),
        ("constraints", "Constraints", joint is not None),
        ("pairs", "Pairs", bool(told and (told["heat"] or told["same"]))),
        ("programs", "Programs", found["table"] is not None),
        ("device", "Execution" if executed_on_cpu(context["space"]) else "Device", bool(context["measured"])),
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
        "coverage": list(relations.coverage(space, joint)),
        "certificate": joint.certificate,
        "statements": [text for text in joint.certificate.statements if not _tabled(joint, text)],
        "doubts": together.doubts(joint),
        "refused": execution.refused(joint),
        "refused_title": execution.refused_title(space),
    }


def _tabled(joint: Joint, statement: str) -> bool:
    """The table of strata says it."""
    return any(statement.startswith((f"{s.name}:", f"{s.name} (")) for s in joint.certificate.strata)


def _legend(space: SpaceMap) -> list[tuple[str, str, str]]:
    """Glyph, word and tone of every mark that the cells use."""
    return [(glyph, word, cells.TONES.get(word, "")) for glyph, word in mark_legend(space)]


def _baseline_facts(space: SpaceMap) -> list[cells.Fact]:
    """What is known of a failing baseline; its reason as it stands."""
    styles = {"why": "long", "where": "code"}
    found = [cells.Fact(name, text, styles.get(name, "text")) for name, text in baseline_facts(space)]
    return [cells.Fact("why", space.reason, "long") if fact.name == "why" else fact for fact in found]
