"""Space maps as GitHub Markdown, to be committed next to the map: the same map gives the same bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import tabulate

from gluonmap.model.joint_map import Joint
from gluonmap.model.space_map import SpaceMap
from gluonmap.report import execution, joint_statements, run_figures
from gluonmap.report.knobs import class_count_text, knobs_by_class, value_chains
from gluonmap.report.map_header import (
    UNSTABLE,
    baseline_facts,
    launch_text,
    program_identity,
    specialisation_text,
    target_name,
)
from gluonmap.report.marks import baseline_compiled, baseline_mark, mark_legend
from gluonmap.report.plain_text import Statement, config_text, first_line, plural, shorten, value_label, visible
from gluonmap.report.resources import resource_figures
from gluonmap.report.sentences import failed_phrase, map_sentence
from gluonmap.report.tables import (
    NO_ANSWER,
    NUMBERS_UNKNOWN,
    PART_OF_THE_PROBLEM,
    PROBLEM_TERMS,
    FailureRow,
    ProgramRow,
    failing_values,
    figure_heads,
    figure_of,
    grouped_by_reason,
    program_rows,
    repeat_commands,
    result_changing_values,
    unanswered_values,
    unexecuted_values,
    value_warnings,
)

# tabulate pads by display width where wcwidth is installed and by length where not: the bytes must not depend on it.
tabulate.WIDE_CHARS_MODE = False

_ENTITIES = str.maketrans({c: f"&#{ord(c)};" for c in "\\`*_[]~$|"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def render(space: SpaceMap) -> str:
    """Return the report. No text of the map can end a table cell, open a tag or run as Markdown."""
    blocks = [f"# {code(space.kernel)} on {text(target_name(space.target))}", *_header(space)]
    blocks += _body(space) if baseline_compiled(space) else _failed_baseline(space)
    blocks += _repeats(space)
    return "\n\n".join(blocks) + "\n"


def _body(space: SpaceMap) -> list[str]:
    blocks = [f"**{text(map_sentence(space))}**"]
    if space.joint is not None:
        blocks.append(f"**{text(joint_statements.sizes(space.joint))}**")
    if space.stable is False:
        blocks.append(f"**{text(UNSTABLE)}.**")
    if space.knobs:
        legend = " · ".join(f"{glyph} {word}" for glyph, word in mark_legend(space))
        blocks += [f"## Knobs ({class_count_text(space).partition(': ')[2]})", _knobs(space), legend]
    if failures := failing_values(space):
        blocks += ["## Why values fail", _failures(failures)]
    if changing := result_changing_values(space):
        blocks += [f"## {PART_OF_THE_PROBLEM}", _failures(changing), text(PROBLEM_TERMS)]
    blocks += _measured(space)
    if unexecuted := unexecuted_values(space):
        blocks += [f"## {NUMBERS_UNKNOWN}", _failures(unexecuted)]
    if programs := program_rows(space):
        blocks += [f"## Programs ({len(programs)} distinct)", *_programs(programs)]
    if space.joint is not None:
        blocks += _joint(space, space.joint)
    if space.literals:
        blocks += ["## Demands read from the source", _bullets(map(text, space.literals))]
    return blocks + _rest(space)


def _measured(space: SpaceMap) -> list[str]:
    title = execution.title(space)
    if not title or not (rows := execution.rows(space)):
        return []
    cells = [(code(r.what), *map(text, execution.row_cells(space, r)[1:])) for r in rows]
    blocks = [
        f"## {text(title)}",
        table(execution.shown_heads(space), cells),
        _bullets(map(text, execution.terms(space))),
    ]
    return blocks + _found(execution.findings(space))


def _found(found: Sequence[execution.SanitizerRow]) -> list[str]:
    cells = [
        (
            code(item.what),
            code(item.place),
            text(item.kind),
            f"{code(item.instruction)}<br>{text(f'{item.who}: {item.detail}'.rstrip(': '))}",
            str(item.instructions),
        )
        for item in found
    ]
    return [f"### {execution.FINDINGS_TITLE}", table(execution.FINDINGS_HEADS, cells, right=1)] if found else []


def _joint(space: SpaceMap, joint: Joint) -> list[str]:
    blocks = [f"## {text(joint_statements.title(joint))}"]
    for heading, lines in joint_statements.sections(space, joint):
        blocks += [*([f"### {text(heading)}"] if heading else []), statements(lines)]
    if lost := execution.refused(joint):
        blocks += [f"### {text(execution.refused_title(space))}", statements(lost)]
    return blocks


def statements(lines: Iterable[Statement]) -> str:
    """Return a list of statements, each with its details below it."""
    return "\n".join(
        "\n".join([f"- {text(line.text)}", *(f"  - {text(detail)}" for detail in line.details)]) for line in lines
    )


def _rest(space: SpaceMap) -> list[str]:
    blocks = ["## Notes", _bullets(map(text, space.notes))] if space.notes else []
    if warned := value_warnings(space):
        blocks += ["## Passed with an error message", _bullets(f"{code(what)}: {code(why)}" for what, why in warned)]
    if space.fixed:
        blocks += ["## Fixed parameters", _reasons(space.fixed)]
    if space.not_probed:
        blocks += ["## Not probed", _reasons(space.not_probed)]
    if unjudged := unanswered_values(space):
        blocks += [f"## {NO_ANSWER}", _failures(unjudged)]
    if space.unanswered:
        blocks.append(f"{plural(space.unanswered, 'planned candidate')} not asked: this map is incomplete.")
    return blocks


def _failed_baseline(space: SpaceMap) -> list[str]:
    mark = baseline_mark(space)
    blocks = [f"**{mark.glyph} {text(space.outcome)}: the baseline {failed_phrase(space)}.**"]
    facts = [
        f"{name}: {text(said) if name == 'next' else code(first_line(said))}" for name, said in baseline_facts(space)
    ]
    blocks.append(_bullets(facts))
    if len(space.reason.strip().splitlines()) > 1:
        blocks.append(fence(visible(line) for line in space.reason.strip().splitlines()))
    blocks += _measured(space)
    return blocks + (["## Notes", _bullets(map(text, space.notes))] if space.notes else [])


def _repeats(space: SpaceMap) -> list[str]:
    blocks = []
    if commands := joint_statements.commands(space):
        lines = [line for what, command in commands for line in (f"# {what}", visible(command))]
        blocks += ["## Next commands", fence(lines, "sh")]
    blocks += ["## Repeat by hand", fence([visible(space.repeat)], "sh")] if space.repeat else []
    if commands := repeat_commands(space):
        lines = [line for what, command in commands for line in (f"# {what}", command)]
        summary = f"<summary>Commands for the {plural(len(commands), 'value')} that did not pass</summary>"
        blocks += [f"<details>\n{summary}", fence(lines, "sh"), "</details>"]
    return blocks


# --- pieces ----------------------------------------------------------------------------------------------------------


def code(raw: str) -> str:
    """Return `raw` as code that shows literally, in a table too; empty text stays empty."""
    shown = visible(raw).strip()
    if not shown:
        return ""
    return f"<code>{shown.translate(_ENTITIES)}</code>" if re.search(r"[\\`|<>&]", shown) else f"`{shown}`"


def text(raw: str) -> str:
    """Return `raw` as running text that shows literally, in a table too."""
    shown = visible(raw).strip()
    shown = re.sub(r"(?<![^\W_])_|_(?![^\W_])|[\\`*\[\]~$|&<>]", lambda m: m[0].translate(_ENTITIES), shown)
    return re.sub(r"^(?:([#+=-])|(\d+)([.)]))", lambda m: f"{m[2] or ''}\\{m[1] or m[3]}", shown)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: int = 0) -> str:
    """Return a table; the last `right` columns are run_figures."""
    align = ["left"] * (len(heads) - right) + ["right"] * right
    return tabulate.tabulate(list(rows), list(heads), tablefmt="github", disable_numparse=True, colalign=align)


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _reasons(reasons: dict[str, str]) -> str:
    return _bullets(
        f"{', '.join(map(code, names.split(', ')))}: {text(why)}" for names, why in grouped_by_reason(reasons)
    )


def fence(lines: Iterable[str], language: str = "text") -> str:
    """Return lines unchanged, in a fence that none of them ends."""
    body = "\n".join(lines)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", body)), default=0))
    return f"{fence}{language}\n{body}\n{fence}"


# --- header and tables -----------------------------------------------------------------------------------------------


def _header(space: SpaceMap) -> list[str]:
    rows = [
        ("kernel", code(f"{space.file}:{space.kernel}")),
        ("target", text(f"{target_name(space.target)}, Triton {space.triton}")),
        ("arguments", code(specialisation_text(space))),
        ("launch", text(launch_text(space))),
        ("baseline", code(config_text(space.baseline))),
    ]
    if space.resources is not None:
        rows.append(
            ("resources", ", ".join(f"{f.head} {f.text}" for f in resource_figures(space.target, space.resources)))
        )
    if baseline_compiled(space):
        rows.append(("program", text(program_identity(space))))
    return [_bullets(f"{name}: {value}" for name, value in rows if value)]


def _knobs(space: SpaceMap) -> str:
    rows = []
    for name, knob in knobs_by_class(space):
        values = ", ".join(
            " ≡ ".join(f"{code(token.text)} {token.mark.glyph} {text(token.note)}".strip() for token in chain)
            for chain in value_chains(knob)
        )
        rows.append((code(name), str(knob.knob_class), code(value_label(knob.baseline)), values, text(knob.why)))
    return table(("knob", "class", "baseline", "values", "why"), rows)


def _failures(rows: Sequence[FailureRow]) -> str:
    heads = ("knob", "values", "outcome", "message", "line", "forbidden by")
    return table(
        heads,
        [
            (
                code(row.knob),
                ", ".join(map(code, row.values)),
                f"{row.mark.glyph} {text(row.how)}",
                code(shorten(row.message)),
                code(row.where),
                "<br>".join(map(text, row.because)),
            )
            for row in rows
        ],
    )


def _programs(programs: Sequence[ProgramRow]) -> list[str]:
    rows = run_figures.with_run_figures(programs)
    heads = figure_heads(rows)
    cells = []
    for row in rows:
        moves = [*(["**baseline**"] if row.baseline else []), *map(code, row.moves)]
        found = [figure_of(row, head) for head in heads]
        numbers = [f"**{figure.text}**" if figure.alarm or figure.worse else figure.text for figure in found]
        cells.append((code(row.digest), "<br>".join(moves), "<br>".join(map(text, row.changes)), *numbers))
    blocks = [table(("program", "reached by", "what changes", *heads), cells, right=len(heads))]
    if meant := run_figures.figure_legend(heads):
        blocks.append(text(meant))
    if remarks := run_figures.program_remarks(programs):
        blocks.append(_bullets(map(text, remarks)))
    return blocks
