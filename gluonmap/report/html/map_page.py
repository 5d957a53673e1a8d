"""The page of one map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gluonmap.model.joint_map import Joint
from gluonmap.model.race_record import RaceRecord
from gluonmap.model.space_map import SpaceMap
from gluonmap.report import execution, joint_statements
from gluonmap.report.html import constraints, drawing, knob_table, pairs, programs, race, space_sizes, templating
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

    `home` is the address of the index over many maps, if there is one; the page shows `warnings` at its top.
    """
    context = _common(space) | {"home": home, "warnings": warnings}
    if not baseline_compiled(space):
        return templating.render_template("failing.html.jinja", **context, facts=_baseline_facts(space), sections=[])
    joint = space.joint
    joint_part = _together(space, joint) if joint is not None else {}
    found: dict[str, Any] = {
        "rows": knob_table.rows(space),
        "legend": _legend(space),
        "failures": failing_values(space),
        "changing_title": PART_OF_THE_PROBLEM,
        "changing_terms": PROBLEM_TERMS,
        "unexecuted_title": NUMBERS_UNKNOWN,
        "tones": knob_table.TONES,
        "unjudged": unanswered_values(space),
        "changing": result_changing_values(space),
        "unexecuted": unexecuted_values(space),
        "table": programs.table(space),
        "endless": programs.endless(space),
        "limits": programs.limit(space),
        "races": [race.race_section(space, record) for record in races],
        "joint": joint,
        "joint_part": joint_part,
        "bars": space_sizes.bars(space),
        "ticks": space_sizes.ticks([number for _, number, _ in space_sizes.counts(space) if number is not None]),
        "literals": space.literals,
        "notes": space.notes,
        "passed_with": value_warnings(space),
        "fixed": grouped_by_reason(space.fixed),
        "not_probed": grouped_by_reason(space.not_probed),
        "unanswered": space.unanswered,
        "commands": joint_statements.commands(space),
        "repeats": repeat_commands(space),
    }
    return templating.render_template("map.html.jinja", **context, **found, sections=_sections(context, found))


def _common(space: SpaceMap) -> dict[str, Any]:
    """Return the context that pages of passing and of failing baselines share."""
    device = execution.title(space)
    return {
        "space": space,
        "target": target_name(space.target),
        "sentence": map_sentence(space),
        "classes": class_count_text(space),
        "unstable": f"{UNSTABLE}." if space.stable is False else "",
        "header": _header(space),
        "takes": knob_table.figures(space.target, space.resources) + knob_table.counted(space.measured),
        "device": device,
        "measured": [execution.row_cells(space, row) for row in execution.rows(space)] if device else [],
        "measured_heads": execution.shown_heads(space),
        "found": execution.findings(space),
        "found_heads": execution.FINDINGS_HEADS,
        "found_title": execution.FINDINGS_TITLE,
        "measured_terms": list(execution.terms(space)) if device else [],
    }


def _header(space: SpaceMap) -> list[tuple[str, str, str]]:
    """Return the circumstances that the map holds for: name, text, style of the text."""
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
    """Return anchors and names of the sections that are not empty."""
    joint, joint_part = found["joint"], found["joint_part"]
    known = [
        ("knobs", "Knobs", bool(found["rows"])),
        ("failures", "Failures", any(found[name] for name in ("failures", "changing", "unexecuted", "unjudged"))),
        ("constraints", "Constraints", joint is not None),
        ("pairs", "Pairs", bool(joint_part and (joint_part["heat"] or joint_part["same"]))),
        ("programs", "Programs", found["table"] is not None),
        ("device", "Execution" if executed_on_cpu(context["space"]) else "Device", bool(context["measured"])),
        ("race", "Race", bool(found["races"])),
        ("evidence", "Evidence", joint is not None),
        ("source", "Source and notes", True),
        ("commands", "Commands", bool(found["commands"] or found["repeats"] or context["space"].repeat)),
    ]
    return [(anchor, name) for anchor, name, there in known if there]


def _together(space: SpaceMap, joint: Joint) -> dict[str, Any]:
    heat, more_heat = pairs.heat_maps(space)
    return {
        "asked": joint_statements.title(joint),
        "notes": joint_statements.notes(joint),
        "relations": constraints.constraint_entries(space, joint),
        "beside": joint_statements.summed_up(joint),
        "graph": drawing.graph(space),
        "freed": joint_statements.freed(space),
        "conditions": joint_statements.conditions(space),
        "formula": joint_statements.formula(space),
        "heat": heat,
        "more_heat": more_heat,
        "same": pairs.program_maps(space),
        "coverage": list(constraints.coverage_rows(space, joint)),
        "certificate": joint.certificate,
        "statements": [text for text in joint.certificate.statements if not _tabled(joint, text)],
        "doubts": joint_statements.doubts(joint),
        "refused": execution.refused(joint),
        "refused_title": execution.refused_title(space),
    }


def _tabled(joint: Joint, statement: str) -> bool:
    """Return whether the table of strata shows the statement."""
    return any(statement.startswith((f"{s.name}:", f"{s.name} (")) for s in joint.certificate.strata)


def _legend(space: SpaceMap) -> list[tuple[str, str, str]]:
    """Return glyph, word and tone of every mark that the cells use."""
    return [(glyph, word, knob_table.TONES.get(word, "")) for glyph, word in mark_legend(space)]


def _baseline_facts(space: SpaceMap) -> list[knob_table.Fact]:
    """Return the facts about a failing baseline; its reason is unchanged."""
    styles = {"why": "long", "where": "code"}
    found = [knob_table.Fact(name, text, styles.get(name, "text")) for name, text in baseline_facts(space)]
    return [knob_table.Fact("why", space.reason, "long") if fact.name == "why" else fact for fact in found]
