"""Space maps printed to a terminal, or into a file or a pipe: then plain and 80 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from gluonmap.model.joint_map import Joint
from gluonmap.model.space_map import SpaceMap
from gluonmap.report import execution, joint_statements, run_figures
from gluonmap.report.knobs import Token, class_count_text, knobs_by_class, value_chains
from gluonmap.report.map_header import (
    UNSTABLE,
    baseline_facts,
    launch_text,
    program_identity,
    specialisation_text,
    target_name,
)
from gluonmap.report.marks import CLASS_COLOURS, baseline_compiled, baseline_mark, mark_legend
from gluonmap.report.plain_text import config_text, plural, shorten, value_label, visible
from gluonmap.report.resources import Figure, resource_figures
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
from gluonmap.report.terminal_pieces import (
    TextFlow,
    bullets,
    column_width,
    empty_table,
    facts_table,
    heading,
    section,
    show,
    stack,
    statements,
)

WIDE = 110
"""Columns from which on a table spreads what it stacks below."""


def render(space: SpaceMap, console: Console) -> None:
    """Print one map. Colour and width are the console's; every mark can be read without colour."""
    show(console, lambda: _print(space, console))


def render_heads(spaces: Sequence[SpaceMap], console: Console) -> None:
    """Print the one sentence about each map, with its target."""
    heads = [(target_name(space.target), map_sentence(space)) for space in spaces]
    show(console, lambda: section(console, "Each target in a sentence", facts_table(heads)))


def _print(space: SpaceMap, console: Console) -> None:
    console.print(_header(space))
    console.print()
    if not baseline_compiled(space):
        _print_failed_baseline(space, console)
        return
    console.print(Text(map_sentence(space), "bold"))
    if space.joint is not None:
        console.print(Text(joint_statements.sizes(space.joint), "bold"))
    if space.stable is False:
        console.print(Text(UNSTABLE + ".", "bold red"))
    if space.knobs:
        section(console, f"Knobs ({class_count_text(space).partition(': ')[2]})", _knobs(space, console))
        console.print(TextFlow([Text(f"{glyph} {word}", "dim") for glyph, word in mark_legend(space)], gap=3))
    if failures := failing_values(space):
        section(console, "Why values fail", _failures(failures, console))
    if changing := result_changing_values(space):
        terms = Text(f" {PROBLEM_TERMS}", "dim")
        section(console, PART_OF_THE_PROBLEM, _failures(changing, console), terms)
    _print_measured(space, console)
    if unexecuted := unexecuted_values(space):
        section(console, NUMBERS_UNKNOWN, _failures(unexecuted, console))
    if programs := program_rows(space):
        section(console, f"Programs ({len(programs)} distinct)", *_programs(programs, console))
    if space.joint is not None:
        _print_joint(space, space.joint, console)
    if space.literals:
        section(console, "Demands read from the source", bullets(space.literals))
    _print_rest(space, console)
    _print_repeats(space, console)


def _print_measured(space: SpaceMap, console: Console) -> None:
    title = execution.title(space)
    if not title or not (rows := execution.rows(space)):
        return
    table = empty_table(console, *((head, 0) for head in execution.shown_heads(space)))
    for row in rows:
        what, *middle, remark = execution.row_cells(space, row)
        table.add_row(Text(what, "bold"), *map(Text, middle), Text(remark, "yellow"))
    section(console, title, table, bullets(execution.terms(space)))
    if found := execution.finding_statements(space):
        section(console, execution.FINDINGS_TITLE, statements(found))


def _print_joint(space: SpaceMap, joint: Joint, console: Console) -> None:
    heading(console, joint_statements.title(joint))
    for title, lines in joint_statements.sections(space, joint):
        if title:
            heading(console, title)
        console.print(statements(lines))
    if lost := execution.refused(joint):
        heading(console, execution.refused_title(space))
        console.print(statements(lost))


def _print_failed_baseline(space: SpaceMap, console: Console) -> None:
    mark = baseline_mark(space)
    head = f"{mark.glyph} {visible(space.outcome)}: the baseline {failed_phrase(space)}."
    console.print(Text(head, f"bold {mark.colour}"))
    console.print(facts_table(baseline_facts(space)))
    _print_measured(space, console)
    if space.notes:
        section(console, "Notes", bullets(space.notes))
    _print_repeats(space, console)


def _print_rest(space: SpaceMap, console: Console) -> None:
    if space.notes:
        section(console, "Notes", bullets(space.notes))
    if warned := value_warnings(space):
        section(console, "Passed with an error message", bullets(f"{what}: {text}" for what, text in warned))
    if space.fixed:
        section(console, "Fixed parameters", bullets(": ".join(pair) for pair in grouped_by_reason(space.fixed)))
    if space.not_probed:
        names = ", ".join(visible(name) for name in space.not_probed)
        section(console, "Not probed (why: in the Markdown report)", Text(f" {names}", "dim"))
    if unjudged := unanswered_values(space):
        section(console, NO_ANSWER, _failures(unjudged, console))
    if space.unanswered:
        text = f"{plural(space.unanswered, 'planned candidate')} not asked: this map is incomplete."
        console.print()
        console.print(Text(text, "yellow"))


def _print_repeats(space: SpaceMap, console: Console) -> None:
    _print_commands("Next commands", joint_statements.commands(space), console)
    commands = [("baseline", visible(space.repeat))] if space.repeat else []
    commands += repeat_commands(space)[:1]
    _print_commands("Repeat by hand", commands, console)


def _print_commands(title: str, commands: Sequence[tuple[str, str]], console: Console) -> None:
    if commands:
        heading(console, title)
    for what, command in commands:
        console.print(Text(f" {what}", "dim"))
        console.print(Text(f"   {command}"), soft_wrap=True)


# --- header ----------------------------------------------------------------------------------------------------------


def _header(space: SpaceMap) -> Table:
    rows: list[tuple[str, RenderableType]] = [
        ("kernel", Text(f"{visible(space.file)}:{visible(space.kernel)}", "bold")),
        ("target", f"{target_name(space.target)}, Triton {visible(space.triton)}"),
        ("arguments", specialisation_text(space)),
        ("launch", launch_text(space)),
        ("baseline", config_text(space.baseline)),
    ]
    if space.resources is not None:
        rows.append(("resources", _figures(resource_figures(space.target, space.resources))))
    if baseline_compiled(space):
        rows.append(("program", Text(program_identity(space), "red" if space.stable is False else "")))
    return facts_table(rows)


def _figures(found: Iterable[Figure]) -> TextFlow:
    return TextFlow([Text(f"{f.head} {f.text}", _alarm(f)) for f in found], gap=3)


def _alarm(figure: Figure) -> str:
    return "bold red" if figure.alarm else "yellow" if figure.worse else ""


# --- tables ----------------------------------------------------------------------------------------------------------


def _knobs(space: SpaceMap, console: Console) -> Table:
    knobs, wide = knobs_by_class(space), console.width >= WIDE
    names = [visible(name) for name, _ in knobs]
    columns = [
        ("knob", column_width(names)),
        ("class", 7),
        ("baseline", column_width([value_label(k.baseline) for _, k in knobs], 12)),
    ]
    table = empty_table(console, *columns, *([("values", 0), ("why", 0)] if wide else [("values, and why", 0)]))
    for name, knob in knobs:
        values = TextFlow([_chain(chain) for chain in value_chains(knob)], gap=2)
        why = Text(visible(knob.why), "dim" if not wide else "")
        colour = CLASS_COLOURS[knob.knob_class]
        cells = (Text(visible(name), "bold"), Text(knob.knob_class, colour), Text(value_label(knob.baseline)))
        table.add_row(*cells, *((values, why) if wide else (stack(values, why),)))
    return table


def _chain(chain: Sequence[Token]) -> Text:
    text = Text()
    for token in chain:
        text.append(" ≡ " if text else "").append(token.text, "bold" if token.mark.glyph == "●" else "")
        text.append(f" {token.mark.glyph}{token.note}", token.mark.colour)
    return text


def _failures(rows: Sequence[FailureRow], console: Console) -> Table:
    knobs = column_width(row.knob for row in rows)
    wide = console.width >= WIDE
    if wide:
        table = empty_table(
            console, ("knob", knobs), ("values", 0), ("outcome", 12), ("message", 0), ("line, and what forbids it", 0)
        )
    else:
        table = empty_table(
            console, ("knob, values", knobs), ("outcome", 14), ("message, line, and what forbids it", 0)
        )
    for row in rows:
        knob = Text(row.knob, "bold")
        values = Text(", ".join(row.values))
        outcome = Text(f"{row.mark.glyph} {row.outcome}", row.mark.colour)
        how = stack(outcome, Text(row.kind), Text(f"({row.stage})" if row.stage else "", "dim"))
        message = Text(shorten(row.message))
        forbidden = (Text(row.where, "bold"), *(Text(text) for text in row.because))
        if wide:
            table.add_row(knob, values, how, message, stack(*forbidden) if any(forbidden) else "")
        else:
            table.add_row(stack(knob, values), how, stack(message, *forbidden) if message or any(forbidden) else "")
    return table


def _programs(programs: Sequence[ProgramRow], console: Console) -> list[RenderableType]:
    rows = run_figures.with_run_figures(programs)
    heads = figure_heads(rows)
    found = [[figure_of(row, head) for head in heads] for row in rows]
    differs = [len({each[i].text for each in found}) > 1 for i in range(len(heads))]
    shown = [[figure for figure, differ in zip(each, differs, strict=True) if differ] for each in found]
    same = [f"{figure.head} {figure.text}" for figure, differ in zip(found[0], differs, strict=True) if not differ]
    table = _spread_programs(rows, shown, console)
    if table.__rich_measure__(console, console.options.update_width(1000)).maximum > console.width:
        table = _stacked_programs(rows, shown, console)
    below: list[RenderableType] = []
    if same and len(rows) > 1:
        below.append(Text(f"The same in all: {', '.join(same)}", "dim"))
    if meant := run_figures.figure_legend(heads):
        below += [Text(meant, "dim"), bullets(run_figures.program_remarks(programs))]
    return [table, *below]


def _spread_programs(rows: Sequence[ProgramRow], shown: Sequence[Sequence[Figure]], console: Console) -> Table:
    moves = column_width((move for row in rows for move in row.moves), 32)
    table = empty_table(console, ("program", 8), ("reached by", moves), ("what changes", 12))
    for column in zip(*shown, strict=True):
        width = column_width(text for figure in column for text in (figure.head, figure.text))
        table.add_column(Text(column[0].head), justify="right", min_width=width)
    for row, found in zip(rows, shown, strict=True):
        reached = stack(Text("baseline" if row.baseline else "", "bold"), *map(Text, row.moves))
        changes = stack(*map(Text, row.changes)) if row.changes else ""
        table.add_row(row.digest, reached, changes, *(Text(f.text, _alarm(f)) for f in found))
    return table


def _stacked_programs(rows: Sequence[ProgramRow], shown: Sequence[Sequence[Figure]], console: Console) -> Table:
    table = empty_table(console, ("program", 8), ("reached by", 0), ("what changes", 0))
    for index, (row, found) in enumerate(zip(rows, shown, strict=True)):
        reached = stack(Text("baseline" if row.baseline else "", "bold"), *map(Text, row.moves))
        new = [f for f, first in zip(found, shown[0], strict=True) if index == 0 or f.text not in (first.text, "-")]
        changes: list[RenderableType] = [Text(change) for change in row.changes]
        changes += [_figures(new)] if new else []
        table.add_row(row.digest, reached, stack(*changes) if changes else "")
    return table
