"""Coordinates of the drawings, in whole units: the constraint graph, and the times of a race.

Text is measured as so many characters of a fixed width, which is what the page's style sets it in: the same map gives
the same picture on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gluonmap.model.joint_map import Joint
from gluonmap.model.race_record import Finalist
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.constraint_graph import GraphBlock, layout
from gluonmap.query.feasibility import domains_of
from gluonmap.report.knobs import knobs_by_signature
from gluonmap.report.plain_text import plural, shorten, value_label, visible

ADVANCE = 7.3
"""Width of one character of 12 units' height in a monospaced font (0.6 of it in most), with a little to spare."""
ROW = 34
HEIGHT = 26
TOP = 4
"""Space above a box, in its row."""
PAD = 10
GAP = 90
"""Space between knobs and their constraints."""
CAPTION = 26
WIDTH = 800
MOST_KNOB = 40
LONGEST = 62
"""Number of characters of a relation that the graph shows; the list below it has all."""


@dataclass(frozen=True, slots=True)
class Node:
    """A box with its text. `kind`: "knob", "constraint" or "condition"."""

    id: str
    kind: str
    x: int
    y: int
    width: int
    text: str
    sub: str
    """Text after the text, fainter."""
    href: str
    note: str
    """Text shown on hover and focus."""
    flag: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from one box to another, by their ids."""

    one: str
    other: str
    path: str
    dashed: bool


@dataclass(frozen=True, slots=True)
class Caption:
    y: int
    text: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """The constraint graph."""

    width: int
    height: int
    captions: tuple[Caption, ...]
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    summary: str
    """Text for screen readers."""


class _Sheet:
    """Boxes and lines of a drawing, placed from top to bottom."""

    def __init__(self, space: SpaceMap) -> None:
        self.space = space
        self.domains = domains_of(space)
        self.anchors = {name: f"k{n}" for n, (name, _) in enumerate(knobs_by_signature(space), 1)}
        self.y = 0
        self.right = 0
        self.captions: list[Caption] = []
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []

    def caption(self, text: str) -> None:
        self.y += CAPTION
        self.captions.append(Caption(self.y - 6, text))

    def put(self, node: Node) -> None:
        self.nodes.append(node)
        self.right = max(self.right, node.x + node.width)

    def knob(self, name: str, x: int, y: int, width: int = 0, flag: str = "") -> Node:
        values = ", ".join(value_label(value) for value in self.domains[name])
        note = f"{name}: {values}; baseline {value_label(self.space.baseline[name])}"
        if name in self.space.knobs:
            knob = self.space.knobs[name]
            note += f". {str(knob.knob_class).capitalize()}: {knob.why}"
        text, sub = self.label(name, flag)
        place = list(self.domains).index(name) + 1
        href = f"#{self.anchors[name]}" if name in self.anchors else ""
        node = Node(f"n{place}", "knob", x, y, width or _width(f"{text} {sub}"), text, sub, href, note, flag)
        self.put(node)
        return node

    def label(self, name: str, flag: str = "") -> tuple[str, str]:
        """Return the texts of a knob's box: its name, and its value or the number of its values."""
        pinned = f"= {value_label(self.space.baseline[name])}" if flag == "pinned" else ""
        return shorten(visible(name), MOST_KNOB), shorten(pinned or f"{len(self.domains[name])} values", MOST_KNOB)

    def row(self, names: Sequence[str], flag: str = "") -> None:
        """Place knobs next to each other, as many to a row as fit."""
        x = 0
        for name in names:
            width = _width(" ".join(self.label(name, flag)))
            if x and x + width > WIDTH:
                x, self.y = 0, self.y + ROW
            x += self.knob(name, x, self.y, flag=flag).width + 12
        self.y += ROW

    def block(self, joint: Joint, block: GraphBlock, column: int) -> None:
        """Place knobs in a column and their constraints in a column to the right; the shorter one is centred."""
        rows = max(len(block.knobs), len(block.order))
        boxes: dict[str, Node] = {}
        for name, y in zip(block.knobs, _spread(len(block.knobs), rows, self.y), strict=True):
            boxes[name] = self.knob(name, 0, y, column, block.flag)
        for name, y in zip(block.order, _spread(len(block.order), rows, self.y), strict=True):
            boxes[name] = self._tie(joint, name, column + GAP, y)
        for one, other in block.edges:
            self.edges.append(_edge(boxes[one], boxes[other]))
        self.y += rows * ROW

    def _tie(self, joint: Joint, name: str, x: int, y: int) -> Node:
        kind, number = name.split()
        if kind == "condition":
            rule = joint.inertness[int(number)]
            said = f"{rule.words}. {rule.changed:,} pairs that differ in it alone are two programs, {rule.same:,} one"
            text, href, note = f"{rule.knob} matters only if {rule.condition}", "#conditions", said
        else:
            item = joint.constraints[int(number)]
            facts = f"{item.standing}: {item.failed:,} failed, {item.passed:,} got past it"
            why = shorten(" ".join(part for part in (item.outcome, item.reason) if part))
            text, href = item.words, f"#c{int(number) + 1}"
            note = ". ".join(part for part in (item.words, facts, why, item.line) if part)
        text = shorten(visible(text), LONGEST)
        node = Node(f"{kind[:4]}{int(number) + 1}", kind, x, y, _width(text), text, "", href, note)
        self.put(node)
        return node


def graph(space: SpaceMap) -> Drawing | None:
    """Return the constraint graph with its boxes placed; None for a map without a joint part."""
    joint = space.joint
    if joint is None:
        return None
    blocks = layout(space)
    tied = [b for b in blocks if b.order and not b.flag]
    sheet = _Sheet(space)
    labels = [sheet.label(name, b.flag) for b in blocks if b.order for name in b.knobs]
    column = max((_width(" ".join(label)) for label in labels), default=0)
    for number, block in enumerate(tied):
        few = len(block.knobs) == 1
        if number == 0 or (few and len(tied[number - 1].knobs) > 1):
            sheet.caption("constrained by itself" if few else "tied together")
        elif not few:
            sheet.caption("tied together, apart from the above")
        sheet.block(joint, block, column)
    if free := [b.knobs[0] for b in blocks if not b.order and not b.flag]:
        sheet.caption("free: no constraint reads them")
        sheet.row(free)
    aside = {flag: [b for b in blocks if b.flag == flag] for flag in ("pinned", "inert")}
    for flag, found in aside.items():
        if found:
            sheet.caption(f"set aside: {flag}")
        for block in (b for b in found if b.order):
            sheet.block(joint, block, column)
        if alone := [b.knobs[0] for b in found if not b.order]:
            sheet.row(alone, flag)
    groups = plural(len(tied), "group")
    summary = f"{groups} of constrained knobs, {len(free)} free" + "".join(f", {len(b)} {f}" for f, b in aside.items())
    return Drawing(sheet.right + 2, sheet.y, tuple(sheet.captions), tuple(sheet.nodes), tuple(sheet.edges), summary)


def _width(text: str) -> int:
    return math.ceil(len(text) * ADVANCE) + 2 * PAD


def _spread(count: int, rows: int, top: int) -> list[int]:
    """Return the tops of `count` boxes, spread evenly over the height of `rows`."""
    step = rows * ROW / max(count, 1)
    return [round(top + step * number + (step - ROW) / 2) for number in range(count)]


def _edge(one: Node, other: Node) -> Edge:
    x, y = one.x + one.width, one.y + TOP + HEIGHT // 2
    u, v = other.x + 1, other.y + TOP + HEIGHT // 2
    middle = (x + u) // 2
    return Edge(one.id, other.id, f"M{x} {y}C{middle} {y} {middle} {v} {u} {v}", other.kind == "condition")


# --- a race ----------------------------------------------------------------------------------------------------------

LANE = 26
AXIS = 34


@dataclass(frozen=True, slots=True)
class FinalistLane:
    """A finalist: its ratio to the baseline's time, with the interval."""

    y: int
    low: int
    at: int
    high: int
    tone: str
    text: str
    said: str


@dataclass(frozen=True, slots=True)
class Tick:
    x: int
    text: str


@dataclass(frozen=True, slots=True)
class RaceChart:
    """Times as ratios to the baseline's, with the noise as a band."""

    width: int
    height: int
    left: int
    band: tuple[int, int]
    one: int
    runners: tuple[FinalistLane, ...]
    ticks: tuple[Tick, ...]


MOST_NAME = 60
"""Number of characters of a finalist's name that the drawing shows."""


def race_chart(finalists: Sequence[Finalist], floor: float, labels: Sequence[str]) -> RaceChart:
    """Return the finalists, named by `labels`, on one scale of ratios to the baseline's time."""
    labels = [shorten(label, MOST_NAME) for label in labels]
    left = max(_width(label) for label in labels)
    width = max(WIDTH, left + 360)
    ratios = [f.against_baseline.ratio for f in finalists]
    noise = max(floor, 0.0)
    least = min([1 / (1 + noise), *(r.low for r in ratios)])
    most = max([1 + noise, *(r.high for r in ratios)])
    margin = (most - least) * 0.06 or 0.01
    least, most = least - margin, most + margin

    def x(ratio: float) -> int:
        return round(left + (ratio - least) / (most - least) * (width - left - 12))

    runners = tuple(
        _lane(item, label, x, AXIS + LANE * row)
        for row, (item, label) in enumerate(zip(finalists, labels, strict=True))
    )
    step = _step(most - least)
    first = math.ceil(least / step)
    ticks = tuple(Tick(x(n * step), f"{n * step:.3f}") for n in range(first, math.floor(most / step) + 1))
    height = AXIS + LANE * len(runners)
    return RaceChart(width, height, left, (x(1 / (1 + noise)), x(1 + noise)), x(1.0), runners, ticks)


def _lane(item: Finalist, label: str, x: Callable[[float], int], top: int) -> FinalistLane:
    ratio = item.against_baseline.ratio
    said = f"{label}: {ratio.ratio:.3f} of the baseline's time, {ratio.low:.3f} to {ratio.high:.3f}"
    return FinalistLane(
        top, x(ratio.low), x(ratio.ratio), x(ratio.high), str(item.against_baseline.standing), label, said
    )


def _step(span: float) -> float:
    """Return a round distance of ticks for six of them or fewer."""
    rough = span / 6
    power = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
