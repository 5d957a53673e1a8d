"""Prints a space map for a person at a terminal, or into a file or a pipe: then plain and 80 columns wide."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich.box import Box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gluonmap.model.joint_map import Joint
from gluonmap.model.space_map import SpaceMap
from gluonmap.report import execution, figures
from gluonmap.report import joint as together
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

WIDE = 110
"""Columns from which on a table spreads what it stacks below."""

NARROW = 80
"""Columns below which names and figures are folded too, so that nothing is cut off."""

RULE = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


def render(space: SpaceMap, console: Console) -> None:
    """Print one map. Colour and width are the console's; every mark can be read without colour."""
    show(console, lambda: _print(space, console))


def render_heads(spaces: Sequence[SpaceMap], console: Console) -> None:
    """Print the one sentence about each map, with its target."""
    heads = [(target_name(space.target), map_sentence(space)) for space in spaces]
    show(console, lambda: _section(console, "Each target in a sentence", _facts(heads)))


def show(console: Console, report: Callable[[], None]) -> None:
    """Print a report to a terminal as it is; else without blanks at the ends of lines, and in ASCII where need be."""
    if console.is_terminal and not console.options.ascii_only:
        report()
        return
    with console.capture() as captured:
        report()
    plain = "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])
    if console.options.ascii_only:
        plain = as_ascii(plain)
    console.out(plain, end="", highlight=False)


_ASCII = str.maketrans(
    {
        "→": "->",
        "≤": "<=",
        "✓": "+",
        "⊘": "x",
        "✗": "X",
        "↑": "^",
        "∞": "~",
        "≠": "#",
        "–": "-",
        "·": ".",
        "●": "*",
        "○": "o",
        "Δ": "D",
    }
    | {"⌂": "h", "◇": "R", "≡": "=", "×": "x", "…": "..."}
)


def as_ascii(text: str) -> str:
    """Return `text` for a terminal that shows nothing else: marks by letters of their own."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def _print(space: SpaceMap, console: Console) -> None:
    console.print(_header(space))
    console.print()
    if not baseline_compiled(space):
        _print_failed_baseline(space, console)
        return
    console.print(Text(map_sentence(space), "bold"))
    if space.joint is not None:
        console.print(Text(together.sizes(space.joint), "bold"))
    if space.stable is False:
        console.print(Text(UNSTABLE + ".", "bold red"))
    if space.knobs:
        _section(console, f"Knobs ({class_count_text(space).partition(': ')[2]})", _knobs(space, console))
        console.print(_Flow([Text(f"{glyph} {word}", "dim") for glyph, word in mark_legend(space)], gap=3))
    if failures := failing_values(space):
        _section(console, "Why values fail", _failures(failures, console))
    if changing := result_changing_values(space):
        terms = Text(f" {PROBLEM_TERMS}", "dim")
        _section(console, PART_OF_THE_PROBLEM, _failures(changing, console), terms)
    _print_measured(space, console)
    if unexecuted := unexecuted_values(space):
        _section(console, NUMBERS_UNKNOWN, _failures(unexecuted, console))
    if programs := program_rows(space):
        _section(console, f"Programs ({len(programs)} distinct)", *_programs(programs, console))
    if space.joint is not None:
        _print_joint(space, space.joint, console)
    if space.literals:
        _section(console, "Demands read from the source", _bullets(space.literals))
    _print_rest(space, console)
    _print_repeats(space, console)


def _print_measured(space: SpaceMap, console: Console) -> None:
    title = execution.title(space)
    if not title or not (rows := execution.rows(space)):
        return
    table = _table(console, *((head, 0) for head in execution.shown_heads(space)))
    for row in rows:
        what, *told, remark = execution.cells(space, row)
        table.add_row(Text(what, "bold"), *map(Text, told), Text(remark, "yellow"))
    _section(console, title, table, _bullets(execution.terms(space)))
    if found := execution.found_lines(space):
        _section(console, execution.FOUND, statements(found))


def _print_joint(space: SpaceMap, joint: Joint, console: Console) -> None:
    heading(console, together.title(joint))
    for title, lines in together.sections(space, joint):
        if title:
            heading(console, title)
        console.print(statements(lines))
    if lost := execution.refused(joint):
        heading(console, execution.refused_title(space))
        console.print(statements(lost))


def statements(lines: Iterable[together.Line]) -> RenderableType:
    """Return statements as a list, what stands behind each below it."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(" -"), Text(visible(line.text)))
        for detail in line.details:
            grid.add_row("", Text(visible(detail), "dim"))
    return grid


def _print_failed_baseline(space: SpaceMap, console: Console) -> None:
    mark = baseline_mark(space)
    head = f"{mark.glyph} {visible(space.outcome)}: the baseline {failed_phrase(space)}."
    console.print(Text(head, f"bold {mark.colour}"))
    console.print(_facts(baseline_facts(space)))
    _print_measured(space, console)
    if space.notes:
        _section(console, "Notes", _bullets(space.notes))
    _print_repeats(space, console)


def _print_rest(space: SpaceMap, console: Console) -> None:
    if space.notes:
        _section(console, "Notes", _bullets(space.notes))
    if warned := value_warnings(space):
        _section(console, "Passed with an error message", _bullets(f"{what}: {text}" for what, text in warned))
    if space.fixed:
        _section(console, "Fixed parameters", _bullets(": ".join(pair) for pair in grouped_by_reason(space.fixed)))
    if space.not_probed:
        names = ", ".join(visible(name) for name in space.not_probed)
        _section(console, "Not probed (why: in the Markdown report)", Text(f" {names}", "dim"))
    if unjudged := unanswered_values(space):
        _section(console, NO_ANSWER, _failures(unjudged, console))
    if space.unanswered:
        text = f"{plural(space.unanswered, 'planned candidate')} not asked: this map is incomplete."
        console.print()
        console.print(Text(text, "yellow"))


def _print_repeats(space: SpaceMap, console: Console) -> None:
    _print_commands("Go on with it", together.commands(space), console)
    commands = [("baseline", visible(space.repeat))] if space.repeat else []
    commands += repeat_commands(space)[:1]
    _print_commands("Repeat by hand", commands, console)


def _print_commands(title: str, commands: Sequence[tuple[str, str]], console: Console) -> None:
    if commands:
        heading(console, title)
    for what, command in commands:
        console.print(Text(f" {what}", "dim"))
        console.print(Text(f"   {command}"), soft_wrap=True)


# --- pieces ----------------------------------------------------------------------------------------------------------


def heading(console: Console, title: str, colour: str = "") -> None:
    """Print a blank line and a heading."""
    console.print()
    console.print(Text(title, f"bold underline {colour}" if console.is_terminal else colour))


def _section(console: Console, title: str, *body: RenderableType) -> None:
    heading(console, title)
    for part in body:
        console.print(part)


def _bullets(lines: Iterable[str]) -> RenderableType:
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row(Text(" -"), Text(visible(line)))
    return grid


def _facts(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        if value:
            grid.add_row(Text(name), Text(value) if isinstance(value, str) else value)
    return grid


def _table(console: Console, *columns: tuple[str, int]) -> Table:
    """Return an empty table; a column's number is the width that it must not fall below (0: it may shrink)."""
    table = Table(box=RULE, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for head, width in columns:
        table.add_column(Text(head), overflow="fold", min_width=width if width and console.width >= NARROW else None)
    return table


def figures_table(console: Console, heads: Sequence[str], rows: Iterable[Sequence[str]], right: int) -> Table:
    """Return a table of text; the last `right` columns are figures."""
    table = _table(console, *((head, 0) for head in heads[: len(heads) - right]))
    for head in heads[len(heads) - right :]:
        table.add_column(Text(head), overflow="fold", justify="right")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


def _stack(*parts: RenderableType) -> RenderableType:
    kept = [part for part in parts if part]
    return kept[0] if len(kept) == 1 else Group(*kept)


def _width(texts: Iterable[str], most: int = 24) -> int:
    return min(most, max((Text(text).cell_len for text in texts), default=0))


class _Flow:
    """Pieces of text set one after the other, a line broken only between pieces."""

    def __init__(self, pieces: Sequence[Text], gap: int) -> None:
        self.pieces = pieces
        self.gap = gap

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        widths = [piece.cell_len for piece in self.pieces] or [0]
        longest = min(max(widths), options.max_width)
        return Measurement(longest, min(sum(widths) + self.gap * (len(widths) - 1), options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = Text(overflow="fold")
        for piece in self.pieces:
            if line and line.cell_len + self.gap + piece.cell_len > options.max_width:
                yield line
                line = Text(overflow="fold")
            line.append(" " * self.gap if line else "").append_text(piece)
        yield line


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
    return _facts(rows)


def _figures(found: Iterable[Figure]) -> _Flow:
    return _Flow([Text(f"{f.head} {f.text}", _alarm(f)) for f in found], gap=3)


def _alarm(figure: Figure) -> str:
    return "bold red" if figure.alarm else "yellow" if figure.worse else ""


# --- tables ----------------------------------------------------------------------------------------------------------


def _knobs(space: SpaceMap, console: Console) -> Table:
    knobs, wide = knobs_by_class(space), console.width >= WIDE
    names = [visible(name) for name, _ in knobs]
    columns = [
        ("knob", _width(names)),
        ("class", 7),
        ("baseline", _width([value_label(k.baseline) for _, k in knobs], 12)),
    ]
    table = _table(console, *columns, *([("values", 0), ("why", 0)] if wide else [("values, and why", 0)]))
    for name, knob in knobs:
        values = _Flow([_chain(chain) for chain in value_chains(knob)], gap=2)
        why = Text(visible(knob.why), "dim" if not wide else "")
        colour = CLASS_COLOURS[knob.knob_class]
        cells = (Text(visible(name), "bold"), Text(knob.knob_class, colour), Text(value_label(knob.baseline)))
        table.add_row(*cells, *((values, why) if wide else (_stack(values, why),)))
    return table


def _chain(chain: Sequence[Token]) -> Text:
    text = Text()
    for token in chain:
        text.append(" ≡ " if text else "").append(token.text, "bold" if token.mark.glyph == "●" else "")
        text.append(f" {token.mark.glyph}{token.note}", token.mark.colour)
    return text


def _failures(rows: Sequence[FailureRow], console: Console) -> Table:
    knobs = _width(row.knob for row in rows)
    wide = console.width >= WIDE
    if wide:
        table = _table(
            console, ("knob", knobs), ("values", 0), ("outcome", 12), ("message", 0), ("line, and what forbids it", 0)
        )
    else:
        table = _table(console, ("knob, values", knobs), ("outcome", 14), ("message, line, and what forbids it", 0))
    for row in rows:
        knob = Text(row.knob, "bold")
        values = Text(", ".join(row.values))
        outcome = Text(f"{row.mark.glyph} {row.outcome}", row.mark.colour)
        how = _stack(outcome, Text(row.kind), Text(f"({row.stage})" if row.stage else "", "dim"))
        message = Text(shorten(row.message))
        forbidden = (Text(row.where, "bold"), *(Text(text) for text in row.because))
        if wide:
            table.add_row(knob, values, how, message, _stack(*forbidden) if any(forbidden) else "")
        else:
            table.add_row(_stack(knob, values), how, _stack(message, *forbidden) if message or any(forbidden) else "")
    return table


def _programs(programs: Sequence[ProgramRow], console: Console) -> list[RenderableType]:
    rows = figures.beside(programs)
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
    if meant := figures.legend(heads):
        below += [Text(meant, "dim"), _bullets(figures.of_rows(programs))]
    return [table, *below]


def _spread_programs(rows: Sequence[ProgramRow], shown: Sequence[Sequence[Figure]], console: Console) -> Table:
    moves = _width((move for row in rows for move in row.moves), 32)
    table = _table(console, ("program", 8), ("reached by", moves), ("what changes", 12))
    for column in zip(*shown, strict=True):
        width = _width(text for figure in column for text in (figure.head, figure.text))
        table.add_column(Text(column[0].head), justify="right", min_width=width)
    for row, found in zip(rows, shown, strict=True):
        reached = _stack(Text("baseline" if row.baseline else "", "bold"), *map(Text, row.moves))
        changes = _stack(*map(Text, row.changes)) if row.changes else ""
        table.add_row(row.digest, reached, changes, *(Text(f.text, _alarm(f)) for f in found))
    return table


def _stacked_programs(rows: Sequence[ProgramRow], shown: Sequence[Sequence[Figure]], console: Console) -> Table:
    table = _table(console, ("program", 8), ("reached by", 0), ("what changes", 0))
    for index, (row, found) in enumerate(zip(rows, shown, strict=True)):
        reached = _stack(Text("baseline" if row.baseline else "", "bold"), *map(Text, row.moves))
        new = [f for f, first in zip(found, shown[0], strict=True) if index == 0 or f.text not in (first.text, "-")]
        changes: list[RenderableType] = [Text(change) for change in row.changes]
        changes += [_figures(new)] if new else []
        table.add_row(row.digest, reached, _stack(*changes) if changes else "")
    return table
