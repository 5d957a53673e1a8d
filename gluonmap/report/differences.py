"""What differs between two maps, for the terminal and as Markdown. A is the first map, B the second: A → B."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import tabulate
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from gluonmap.differing import Difference
from gluonmap.differing.circumstances import Side
from gluonmap.differing.constraints import ConstraintChange, Move
from gluonmap.differing.flips import Flip, Said
from gluonmap.differing.knobs import KnobChange, KnobState, Turn, ValueChange
from gluonmap.differing.regressions import Regression, RegressionKind
from gluonmap.differing.resources import Growth, ResourceChange
from gluonmap.model import Config, KnobClass, Outcome, Value
from gluonmap.report import markdown, terminal, words
from gluonmap.screen import quoted
from gluonmap.space import ValueMap

MOST = 8
"""Entries of one list; the rest is counted."""
MOST_CAUSES = 6


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the last `right` columns are figures."""

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One statement, and what stands behind it."""

    text: str
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    lines: tuple[Line, ...] = ()
    table: Table | None = None
    bad: bool = False
    """It tells of regressions."""


# --- what is said ----------------------------------------------------------------------------------------------------


def headline(found: Difference) -> str:
    """Return the one sentence that a person would say: the regressions, and what else has changed."""
    other = listed_changes(found)
    if not found.regressions and not found.changed:
        return "No difference." if not found.circumstances else "No difference but the circumstances."
    return f"{regressions_told(found.regressions)} {other}".rstrip()


def regressions_told(found: Sequence[Regression]) -> str:
    """Return "No regression." or "Regressions: 2 values fail and spills grew in 1 program."."""
    if not found:
        return "No regression."
    counts = {kind: sum(item.kind is kind for item in found) for kind in RegressionKind}
    parts = [_counted(kind, count) for kind, count in counts.items() if count]
    return f"Regression{'s' if len(found) > 1 else ''}: {words.listed(parts)}."


def _counted(kind: RegressionKind, count: int) -> str:
    one = count == 1
    match kind:
        case RegressionKind.BASELINE:
            return "the baseline fails"
        case RegressionKind.VALUE:
            return f"{words.plural(count, 'value')} {'fails' if one else 'fail'}"
        case RegressionKind.COMBINATION:
            return f"{words.plural(count, 'combination')} {'fails' if one else 'fail'}"
        case RegressionKind.PROGRAM:
            return f"{words.plural(count, 'program')} {'is' if one else 'are'} no longer handed over"
        case RegressionKind.SPILLS | RegressionKind.REGISTERS:
            return f"{kind} grew in {words.plural(count, 'program')}"


def listed_changes(found: Difference) -> str:
    """Return what has changed besides the regressions, as one sentence; "" where nothing has."""
    parts = []
    for turn in Turn:
        if count := sum(change.turn is turn for change in found.values):
            parts.append(f"{words.plural(count, 'value')} {turn}")
    classes = [change for change in found.knobs if _class_changed(change)]
    if classes:
        parts.append(f"{words.plural(len(classes), 'knob')} of another class")
    alone = [change.knob for change in found.knobs if change.before is None or change.after is None]
    if alone:
        parts.append(f"{words.listed(map(words.visible, alone))} turned by one map only")
    if rest := len(found.knobs) - len(classes) - len(alone):
        parts.append(f"{words.plural(rest, 'knob')} with other values or conditions")
    if found.constraints:
        parts.append(f"{words.plural(len(found.constraints), 'constraint')} changed")
    if found.shared and found.shared.gained:
        parts.append(f"{words.plural(found.shared.gained, 'configuration')} newly feasible")
    if found.shared and found.shared.lost:
        parts.append(f"{words.plural(found.shared.lost, 'configuration')} no longer feasible")
    text = words.listed(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _class_changed(change: KnobChange) -> bool:
    return bool(change.before and change.after and change.before.knob_class is not change.after.knob_class)


def sides(found: Difference, names: tuple[str, str]) -> list[tuple[str, str]]:
    """Return ("A", "reports/…: gemm on gfx942 (cdna3), Triton 3.9.0") for both maps."""
    return [(letter, f"{words.visible(name)}: {_side(side)}") for letter, name, side in _lettered(found, names)]


def _lettered(found: Difference, names: tuple[str, str]) -> list[tuple[str, str, Side]]:
    return [("A", names[0], found.before), ("B", names[1], found.after)]


def _side(side: Side) -> str:
    failed = "" if side.outcome == Outcome.PASS else f", whose baseline is {side.outcome}"
    return words.visible(f"{side.kernel} on {_target(side.target)}, Triton {side.triton}{failed}")


def _target(name: str) -> str:
    alias = words.ALIASES.get(name)
    return f"{name} ({alias})" if alias else name


def sections(found: Difference, names: tuple[str, str]) -> Iterator[Section]:
    """Headings and what stands below them, in the order of a reader's questions; what says nothing is left out."""
    if found.regressions:
        yield Section(f"Regressions ({len(found.regressions):,})", tuple(regressions(found)), bad=True)
    if found.circumstances:
        yield Section("Circumstances that differ", table=Table(("", "A", "B"), tuple(circumstances(found))))
    if found.notes:
        yield Section("Mind", tuple(Line(note) for note in found.notes))
    if found.values:
        yield Section("Single values", tuple(values(found)))
    if found.knobs:
        yield Section("Knobs", tuple(line for change in found.knobs for line in knob(change)))
    if found.constraints or found.formula:
        yield Section("Constraints on all knobs together", tuple(constraints(found)))
    yield Section("Sizes", tuple(sizes(found)), Table(("", "A", "B"), tuple(counts(found)), right=2))
    if gained := _gained(found):
        title = f"Combinations that fail in A and pass in B ({len(gained):,} of those that were asked)"
        yield Section(title, tuple(flipped(gained)))
    if lost := _lost(found):
        title = f"Combinations that fail in B and were only predicted to pass in A ({len(lost):,})"
        yield Section(title, tuple(flipped(lost)))
    if deeper := [flip for flip in found.flips if flip.deeper]:
        title = f"Failing on a device, where the other map was not taken ({len(deeper):,})"
        yield Section(title, tuple(flipped(deeper)))
    if rows := tuple(resources(found)):
        programs = words.plural(max(change.compared for change in found.resources), "pair")
        table = Table(("", "grew in", "fell in", "most", "least"), rows, right=4)
        yield Section(f"Resources, {programs} of programs of equal configurations", tuple(costlier(found)), table)
    if commands := tuple(next_steps(found, names)):
        yield Section(COMMANDS, tuple(Line(command) for command in commands))


COMMANDS = "Look closer"


def circumstances(found: Difference) -> Iterator[tuple[str, ...]]:
    """Rows: what differs that is no finding."""
    for item in found.circumstances:
        yield item.name, words.cut(words.visible(item.before)), words.cut(words.visible(item.after))


def regressions(found: Difference) -> Iterator[Line]:
    """The regressions: what fails by its cause, what grew by how much."""
    failing = [(item, item.after) for item in found.regressions if item.after]
    causes = _alike(failing, lambda pair: _cause(pair[1]))
    for items in causes[:MOST]:
        first, said = items[0]
        many = f"{len(items):,} configurations fail, the nearest to A's baseline {_moved(first.moves)}"
        yield Line(
            f"{many if len(items) > 1 else f'{_moved(first.moves)} fails'}: {why_failing(said)}",
            tuple(_evidence([each for _, each in items], [item for item, _ in items])),
        )
    yield from _more(sum(map(len, causes[MOST:])), "that fail, for other reasons")
    programs = [item for item in found.regressions if item.kind is RegressionKind.PROGRAM]
    yield from (Line(f"{_moved(i.moves)} is no longer handed over: {words.visible(i.why)}") for i in programs[:MOST])
    yield from _more(len(programs) - MOST, "no longer handed over")
    for kind in (RegressionKind.SPILLS, RegressionKind.REGISTERS):
        grown = [item.growth for item in found.regressions if item.kind is kind and item.growth]
        yield from (Line(f"{_grew(found, growth)} at {_moved(growth.moves)}") for growth in grown[:MOST])
        yield from _more(len(grown) - MOST, f"in which {kind} grew")


def _evidence(said: Sequence[Said], items: Sequence[Regression]) -> Iterator[str]:
    """What a group of failing configurations rests on."""
    compiled = sum(each.compiled for each in said)
    if compiled == len(said):
        yield "compiled for B" if compiled == 1 else "each compiled for B"
    else:
        rest = "it was not compiled for B" if len(said) == 1 else f"{compiled:,} of them compiled for B"
        yield f"by B's constraints; {rest}"
    if handed := sum(item.handed_over for item in items):
        yield (
            "A hands it over"
            if len(items) == 1
            else f"A hands over {'each' if handed == len(items) else f'{handed:,}'} of them"
        )


def _more(count: int, what: str) -> Iterator[Line]:
    if count > 0:
        yield Line(f"and {count:,} more {what}")


Item = TypeVar("Item")


def _alike(items: Iterable[Item], key: Callable[[Item], str]) -> list[list[Item]]:
    """The items in groups of one key, the largest first."""
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return sorted(groups.values(), key=len, reverse=True)


def _cause(said: Said) -> str:
    """What configurations that fail alike have in common."""
    return said.broken[0] if said.broken else f"{said.outcome} {re.sub('[0-9][0-9,.]*', '#', said.reason)} {said.line}"


def why_failing(said: Said) -> str:
    """Return why a configuration fails: the compiler's outcome and message, or the constraints that forbid it."""
    place = f" ({words.visible(said.line)})" if said.line else ""
    if said.compiled:
        message = words.cut(words.first_line(said.reason))
        return f"{words.visible(said.outcome)}{f', {message}' if message else ''}{place}"
    return f"against {words.visible('; '.join(said.broken[:2])) or 'a constraint'}{place}"


def _grew(found: Difference, growth: Growth) -> str:
    head, unit = words.resource(found.after.target, growth.resource)
    times = f" ({growth.after / growth.before:.1f} ×)" if 0 < growth.before < growth.after else ""
    return f"{head} {growth.before:,} → {growth.after:,}{unit}{times}"


def _moved(moves: Config) -> str:
    return words.settings(moves) if moves else "the baseline"


# --- values and knobs ------------------------------------------------------------------------------------------------


def values(found: Difference) -> Iterator[Line]:
    """What became of the values that both maps tried, alike ones of a knob together."""

    def alike(change: ValueChange) -> tuple[object, ...]:
        states = _state_of(change.before), _state_of(change.after)
        return change.turn, change.knob, change.one_configuration, states

    groups: dict[tuple[object, ...], list[ValueChange]] = {}
    for change in found.values:
        groups.setdefault(alike(change), []).append(change)
    for changes in groups.values():
        first = changes[0]
        labels = ", ".join(words.label(change.value) for change in changes)
        aside = "" if first.one_configuration else ", beside different baselines"
        states = f"{_state_of(first.before)} → {_state_of(first.after)}"
        why = _why(first)
        yield Line(f"{first.turn}: {words.visible(first.knob)} = {labels}: {states}{aside}", (why,) if why else ())


def _state_of(value: ValueMap) -> str:
    mark = words.value_mark(value)
    if words.fails(value):
        return words.visible(f"{mark.glyph} {value.outcome} {value.kind}".rstrip())
    return f"{mark.glyph} {mark.word}"


def _why(change: ValueChange) -> str:
    """The message of the side that fails, B's where both do; else what the value changes."""
    failing = next((value for value in (change.after, change.before) if words.fails(value)), None)
    if failing is None:
        changed = words.visible(change.after.detail or change.before.detail)
        return f"what it changes: {changed}" if changed else ""
    place = f" (line {failing.line})" if failing.line is not None else ""
    letter = "B" if failing is change.after else "A"
    return f"{letter}: {words.cut(words.first_line(failing.reason))}{place}" if failing.reason else ""


def knob(change: KnobChange) -> Iterator[Line]:
    """What the maps say differently of a knob."""
    name = words.visible(change.knob)
    one, other = change.before, change.after
    if one is None or other is None:
        letter, state = ("A", one) if one else ("B", other)
        said = f"{name}: turned in {letter} only ({state.knob_class})" if state else name
        yield Line(said, (f"compared at {name} = {words.label(change.held)}",))
        return
    if one.knob_class is not other.knob_class:
        reasons = f"A: {words.visible(one.why)}", f"B: {words.visible(other.why)}"
        yield Line(f"{name}: {one.knob_class} → {other.knob_class}", reasons)
    if one.kind is not other.kind:
        yield Line(f"{name} is turned elsewhere: {one.kind} → {other.kind}")
    both = one.condition is not None and other.condition is not None
    if both and one.condition != other.condition:
        yield Line(f"{name} beside other values: {_matters(one)} → {_matters(other)}")
    groups = [_groups(state.one_program) for state in (one, other)]
    inert = KnobClass.INERT in (one.knob_class, other.knob_class)
    if groups[0] != groups[1] and not (inert and _class_changed(change)):
        yield Line(f"{name}, values that are one program: {groups[0] or 'none'} → {groups[1] or 'none'}")
    for letter, only in (("A", change.only_before), ("B", change.only_after)):
        if only:
            yield Line(f"{name}: {', '.join(map(words.label, only))} tried in {letter} only")


def _matters(state: KnobState) -> str:
    match state.condition:
        case "":
            return "it never matters"
        case "always":
            return "it matters"
        case "sometimes":
            return "it matters sometimes"
        case _:
            return words.visible(f"it matters only if {state.condition}")


def _groups(groups: Sequence[Sequence[Value]]) -> str:
    return ", ".join(" = ".join(map(words.label, group)) for group in groups)


# --- all knobs together ----------------------------------------------------------------------------------------------


def constraints(found: Difference) -> Iterator[Line]:
    """The constraints that moved, and what that frees and forbids."""
    if found.formula:
        formula = found.formula
        before = f"{formula.before} ≤ {formula.before_limit:,}"
        after = f"{formula.after} ≤ {formula.after_limit:,}"
        text = f"{before} → {formula.after_limit:,}" if formula.before == formula.after else f"{before} → {after}"
        yield Line(f"bytes of shared memory: {words.visible(text)}")
    telling = [c for c in found.constraints if c.freed or c.forbidden or (c.freed is None and c.forbidden is None)]
    for change in telling[:MOST]:
        yield Line(_constraint(change), tuple(_effect(change)))
    yield from _more(len(telling) - MOST, "changed constraints")
    idle = [change for change in found.constraints if change not in telling]
    if idle:
        texts = tuple(f"{change.move}: {_constraint_words(change)}" for change in idle[:MOST])
        more = (f"and {len(idle) - MOST:,} more",) if len(idle) > MOST else ()
        yield Line("without effect on what both maps tried, for the other constraints say as much", (*texts, *more))


def _constraint(change: ConstraintChange) -> str:
    direction = f", {change.direction}" if change.direction and change.move in (Move.LIMIT, Move.OTHER) else ""
    return f"{change.move}{direction}: {_constraint_words(change)}"


def _constraint_words(change: ConstraintChange) -> str:
    one, other = change.before, change.after
    if one is None or other is None:
        item = one or other
        return words.visible(item.words) if item else ""
    start, end = one.words.split(), other.words.split()
    short = start[:-1] == end[:-1] and len(start) > 1
    return words.visible(f"{one.words} → {end[-1] if short else other.words}")


def _effect(change: ConstraintChange) -> Iterator[str]:
    if change.budget:
        yield f"limit of the target: {change.budget.before:,} → {change.budget.after:,} {change.budget.unit}"
    if change.freed:
        yield f"{words.plural(change.freed, 'configuration')} against it in A, feasible in B"
    if change.forbidden:
        yield f"{words.plural(change.forbidden, 'configuration')} feasible in A, against it in B"
    if change.freed is None and change.forbidden is None:
        yield "its knobs are not those of the other map: what it frees or forbids is not counted"
    item = change.after or change.before
    if item:
        letter = "B" if change.after else "A"
        place = f" at {words.visible(item.line)}" if item.line else ""
        seen = f", {item.failed:,} failed against it and {item.passed:,} got past it" if item.failed else ""
        why = " ".join(part for part in (item.outcome, item.stage and f"({item.stage})", item.reason) if part)
        yield f"{letter}: {item.standing}{place}{seen}" + (f": {words.cut(words.first_line(why))}" if why else "")


def counts(found: Difference) -> Iterator[tuple[str, ...]]:
    """Rows: the numbers that both maps tell."""
    for count in found.counts:
        yield count.name, *("-" if n is None else f"{n:,}" for n in (count.before, count.after))


def sizes(found: Difference) -> Iterator[Line]:
    """The spaces compared, and how much the comparison of single configurations rests on."""
    if shared := found.shared:
        basis = "each asked" if shared.proved else "by each map's constraints"
        tried = f"Of the {shared.signature:,} configurations of values that both tried, {basis}"
        if shared.lost == shared.gained == 0:
            yield Line(f"{tried}: the same {shared.both:,} are feasible in A and in B.")
        else:
            yield Line(
                f"{tried}: {shared.before:,} feasible in A → {shared.after:,} in B; {shared.both:,} in both.",
                tuple(_examples(found)),
            )
    asked = found.asked
    changed = sum(flip.before.compiled and flip.after.compiled for flip in found.flips)
    sides = "none changed sides" if not changed else f"{changed:,} changed sides"
    yield Line(
        f"{words.plural(asked.both, 'configuration')} asked for both: {asked.passed_both:,} passed both; {sides}."
    )
    if asked.one_program is not None:
        yield Line(
            f"Of {words.plural(asked.programs, 'program')} known in both, {asked.one_program:,} are the same code."
        )
    for letter, other, count in (("A", "B", asked.unknown_after), ("B", "A", asked.unknown_before)):
        if count:
            yield Line(f"{count:,} that passed for {letter} {'is' if count == 1 else 'are'} unknown to {other}.")


def _examples(found: Difference) -> Iterator[str]:
    shared = found.shared
    if shared and shared.lost and shared.lost_example:
        moves = _moves(shared.lost_example, found.before.baseline)
        yield f"feasible in A, not in B: {shared.lost:,}, for example {_moved(moves)}"
    if shared and shared.gained and shared.gained_example:
        moves = _moves(shared.gained_example, found.after.baseline)
        home = "B's baseline" if not moves else f"{_moved(moves)} (moves from B's baseline)"
        yield f"feasible in B, not in A: {shared.gained:,}, for example {home}"


def _moves(config: Config, baseline: Config) -> Config:
    return {n: v for n, v in config.items() if n in baseline and repr(v) != repr(baseline[n])}


def _lost(found: Difference) -> list[Flip]:
    """Those that no regression tells of: A was never asked about them."""
    return [flip for flip in found.flips if flip.lost and not flip.before.compiled and not flip.deeper]


def _gained(found: Difference) -> list[Flip]:
    """Of more than one knob: single values are told as such."""
    return [flip for flip in found.flips if not flip.lost and len(flip.moves) != 1 and not flip.deeper]


def flipped(flips: Sequence[Flip]) -> Iterator[Line]:
    """Configurations that changed sides, by the cause of failing."""

    def failing(flip: Flip) -> Said:
        return flip.after if flip.lost else flip.before

    def proved(flip: Flip) -> bool:
        return flip.before.compiled and flip.after.compiled

    groups = _alike(flips, lambda flip: _cause(failing(flip)))
    for items in groups[:MOST_CAUSES]:
        first = min(items, key=lambda flip: (not proved(flip), not failing(flip).compiled, len(flip.moves)))
        count = sum(map(proved, items))
        many = f"{len(items):,}, for example " if len(items) > 1 else ""
        yield Line(
            f"{many}{_moved(first.moves)}: {why_failing(failing(first))}",
            (f"{count:,} of them compiled for both" if len(items) > 1 else "compiled for both",) if count else (),
        )
    if left := sum(map(len, groups[MOST_CAUSES:])):
        yield Line(f"and {left:,} more for other reasons")


# --- resources -------------------------------------------------------------------------------------------------------


def resources(found: Difference) -> Iterator[tuple[str, ...]]:
    """Rows: the resources that are not the same everywhere."""
    for change in _ordered(found.resources):
        if change.grew or change.shrank:
            head, unit = words.resource(found.after.target, change.resource)
            ends = (f"{g.before:,} → {g.after:,}{unit}" if g else "" for g in (change.most, change.least))
            yield head, f"{change.grew:,}", f"{change.shrank:,}", *ends


def costlier(found: Difference) -> Iterator[Line]:
    """Where the largest growths are, by configuration; of the occupancy the largest fall."""
    places: dict[str, list[str]] = {}
    for change in _ordered(found.resources):
        growth = change.least if change.resource == "occupancy" else change.most
        if growth:
            places.setdefault(_moved(growth.moves), []).append(_grew(found, growth))
    for place, grown in places.items():
        yield Line(f"{', '.join(grown)} at {place}")


def _ordered(changes: Iterable[ResourceChange]) -> list[ResourceChange]:
    return sorted(changes, key=lambda change: words.RESOURCE_FIELDS.index(change.resource))


# --- commands --------------------------------------------------------------------------------------------------------


def next_steps(found: Difference, names: tuple[str, str]) -> Iterator[str]:
    """Commands that look at the first regression of each kind in the second map."""
    firsts = [next((item for item in found.regressions if item.kind is kind), None) for kind in RegressionKind]
    commands = (_look(item, names[1]) for item in firsts if item is not None)
    yield from dict.fromkeys(commands)


def _look(item: Regression, map_name: str) -> str:
    moves = "".join(f" {quoted(name, value)}" for name, value in item.again.items())
    verb = "repeat" if item.kind is RegressionKind.BASELINE else "explain"
    return f"gluonmap {verb} {shlex.quote(map_name)}{moves}"


# --- rendered --------------------------------------------------------------------------------------------------------


def render(found: Difference, names: tuple[str, str], console: Console) -> None:
    """Print it. Colour and width are the console's; into a file or a pipe it is plain and 80 columns wide."""
    if console.is_terminal and not console.options.ascii_only:
        _print(found, names, console)
        return
    with console.capture() as captured:
        _print(found, names, console)
    plain = "".join(line.rstrip() + "\n" for line in captured.get().split("\n")[:-1])
    if console.options.ascii_only:
        plain = terminal.as_ascii(plain)
    console.out(plain, end="", highlight=False)


def _print(found: Difference, names: tuple[str, str], console: Console) -> None:
    for letter, said in sides(found, names):
        console.print(Text(f"{letter}  ", "bold").append(said, "not bold"), soft_wrap=True)
    console.print()
    console.print(Text(f"A → B: {headline(found)}", "bold red" if found.regressions else "bold"))
    if not found.changed and not found.circumstances:
        return
    for section in sections(found, names):
        console.print()
        style = "bold underline" if console.is_terminal else ""
        console.print(Text(section.title, f"{style} red".strip() if section.bad else style))
        if section.table and section.table.rows:
            console.print(_grid(section.table))
        for line in section.lines:
            _say(line, console, command=section.title == COMMANDS)


def _say(line: Line, console: Console, *, command: bool) -> None:
    if command:
        console.print(Text(f"   {words.visible(line.text)}", "dim"), soft_wrap=True)
        return
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column()
    grid.add_column(overflow="fold")
    grid.add_row(Text(" -"), Text(words.visible(line.text)))
    for detail in line.details:
        grid.add_row("", Text(words.visible(detail), "dim"))
    console.print(grid)


def _grid(table: Table) -> Grid:
    grid = Grid(box=terminal.RULE, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    plain = len(table.heads) - table.right
    for place, head in enumerate(table.heads):
        grid.add_column(Text(head), overflow="fold", justify="left" if place < plain else "right")
    for row in table.rows:
        grid.add_row(*(Text(words.visible(cell)) for cell in row))
    return grid


def render_markdown(found: Difference, names: tuple[str, str]) -> str:
    """Return it as GitHub Markdown. No text of the maps can end a table cell, open a tag or run as Markdown."""
    title = f"# {markdown.code(found.after.kernel)}: A → B"
    blocks = [title, "\n".join(f"- **{letter}**: {markdown.text(said)}" for letter, said in sides(found, names))]
    blocks.append(f"**{markdown.text(headline(found))}**")
    if found.changed or found.circumstances:
        for section in sections(found, names):
            blocks += [f"## {markdown.text(section.title)}", *_blocks(section)]
    return "\n\n".join(blocks) + "\n"


def _blocks(section: Section) -> Iterator[str]:
    if section.title == COMMANDS:
        yield "\n".join(["```sh", *(words.visible(line.text) for line in section.lines), "```"])
        return
    if section.table and section.table.rows:
        rows = [tuple(map(markdown.text, row)) for row in section.table.rows]
        right = section.table.right
        align = ["left"] * (len(section.table.heads) - right) + ["right"] * right
        heads = list(section.table.heads)
        yield tabulate.tabulate(rows, heads, tablefmt="github", disable_numparse=True, colalign=align)
    if section.lines:
        yield "\n".join(
            "\n".join([f"- {markdown.text(line.text)}", *(f"  - {markdown.text(detail)}" for detail in line.details)])
            for line in section.lines
        )


def annotation(found: Difference, alike: Sequence[Regression]) -> str:
    """Return what stands at a line of the kernel, for regressions of one cause at one place."""
    first = alike[0]
    more = f" (and {len(alike) - 1:,} more)" if len(alike) > 1 else ""
    change = f"{_side(found.before)} → {_side(found.after)}"
    if first.growth is not None:
        what = _grew(found, first.growth)
    elif first.after is not None:
        what = f"passed, and now fails: {why_failing(first.after)}"
    else:
        what = f"is no longer handed over: {words.visible(first.why)}"
    return f"{_moved(first.moves)}: {what}{more}. {change}"
