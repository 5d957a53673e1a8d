"""The page of a comparison of two maps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gluonmap.diff.comparison import Difference
from gluonmap.diff.constraints import ConstraintChange
from gluonmap.diff.knobs import KnobChange
from gluonmap.diff.regressions import Regression
from gluonmap.diff.spaces import SIZES, SharedSpace, SpaceCount
from gluonmap.report.diff import constraints, headline, knobs, regressions, resources, sections, spaces
from gluonmap.report.html import changed_values, resource_changes, space_sizes, templating
from gluonmap.report.html.programs import MOST_ROWS, Setting
from gluonmap.report.map_header import target_name
from gluonmap.report.plain_text import Statement, value_label, visible

NAMES = dict(zip(SIZES, ("signature", "feasible", "programs"), strict=True))


@dataclass(frozen=True, slots=True)
class SpacePart:
    """A part of the configurations that are feasible in at least one map; `width` in per cent of them."""

    tone: str
    sign: str
    text: str
    width: float


@dataclass(frozen=True, slots=True)
class KnobChangeRow:
    """A knob on which the maps differ; its class is empty for a map that does not turn it."""

    name: str
    before: str
    after: str
    lines: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class RegressionRow:
    """A regression as a row of the table."""

    kind: str
    what: str
    by: int
    """Amount by which a resource grew; 0 for a failure."""
    settings: tuple[Setting, ...]
    handed_over: bool


def render(found: Difference, names: tuple[str, str]) -> bytes:
    """Return the page of a comparison; `names` are those of the two maps."""
    context: dict[str, Any] = {
        "found": found,
        "kernel": _both(found.before.kernel, found.after.kernel),
        "where": where(found),
        "sides": headline.sides(found, names),
        "verdict": verdict(found),
        "changes": headline.changes_told(found),
        "bars": bars(found),
        "ticks": space_sizes.ticks(
            [n for count in _sizes(found) for n in (count.before, count.after) if n is not None]
        ),
        "parts": list(parts(found.shared)) if found.shared else [],
        "examples": list(spaces.examples(found, found.shared)) if found.shared else [],
        "circumstances": list(sections.circumstances(found)),
        "regressions": list(regressions.regressions(found)),
        "worse_knobs": _worse_knobs(found),
        "worse": [_worse(found, item) for item in found.regressions[:MOST_ROWS]],
        "commands": regressions.next_steps(found, names[1]),
        "turned": (rows := changed_values.rows(found)),
        "legend": changed_values.legend(rows),
        "knobs": [_knob(change) for change in found.knobs],
        "formula": constraints.formula(found),
        "constraints": [_constraint(item) for item in found.constraints if constraints.has_effect(item)],
        "idle": [_constraint(item) for item in found.constraints if not constraints.has_effect(item)],
        "flips": list(sections.flips(found)),
        "summaries": resource_changes.summaries(found),
        "pairs": resource_changes.table(found),
        "counts": [row for row in spaces.counts(found) if row[0] not in SIZES],
        "asked": list(spaces.asked(found)),
        "taken": resources.summary(found),
    }
    return templating.render_template("diff.html.jinja", **context, home="", sections=_anchors(context))


def where(found: Difference) -> str:
    """Return "gfx942 (cdna3) → gfx950 (cdna4), Triton 3.9.0": where both maps agree, once."""
    one, other = found.before, found.after
    target = _both(target_name(one.target), target_name(other.target))
    return f"{target}, Triton {_both(one.triton, other.triton)}"


def _both(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def verdict(found: Difference) -> str:
    """Return the sentence of the first screen, without what else has changed."""
    if found.regressions or found.changed:
        return headline.regressions_told(found.regressions)
    return headline.headline(found)


def _anchors(context: dict[str, Any]) -> list[tuple[str, str]]:
    """Return anchors and names of the sections that are not empty."""
    known = [
        ("regressions", "Regressions", context["worse"]),
        ("values", "Values", context["turned"]),
        ("knobs", "Knobs", context["knobs"]),
        ("constraints", "Constraints", context["constraints"] or context["idle"] or context["formula"]),
        ("flips", "Combinations", context["flips"]),
        ("resources", "Resources", context["summaries"]),
        ("evidence", "Evidence", True),
    ]
    return [(anchor, name) for anchor, name, there in known if there]


# --- how much of both spaces is left ---------------------------------------------------------------------------------


def _sizes(found: Difference) -> list[SpaceCount]:
    return [count for count in found.counts if count.name in NAMES]


def bars(found: Difference) -> list[tuple[str, space_sizes.Bar, space_sizes.Bar]]:
    """Return the signature, what of it is feasible and the distinct programs, each of both maps on one scale."""
    sizes = _sizes(found)
    most = max((n for count in sizes for n in (count.before, count.after) if n is not None), default=1)
    return [
        (
            NAMES[count.name],
            _bar(count.before, of.before, most, count.before_at_most),
            _bar(count.after, of.after, most, count.after_at_most),
        )
        for count, of in zip(sizes, [SpaceCount("", None, None), *sizes], strict=False)
    ]


def _bar(number: int | None, of: int | None, most: int, at_most: bool) -> space_sizes.Bar:
    share = "" if number is None or not of else space_sizes.share(number, of)
    share = f"at most, {share}" if at_most and share else share
    return space_sizes.Bar("", "" if number is None else f"{number:,}", share, space_sizes.length(number, most))


def parts(shared: SharedSpace) -> Iterator[SpacePart]:
    """Yield what is feasible in A alone, in both and in B alone, of the values that both maps tried."""
    whole = shared.both + shared.lost + shared.gained
    for tone, sign, number, where in (
        ("lost", "−", shared.lost, "in A only"),
        ("both", "=", shared.both, "in both"),
        ("gained", "+", shared.gained, "in B only"),
    ):
        yield SpacePart(tone, sign, f"{number:,} {where}", round(100 * number / whole, 2) if whole else 0.0)


# --- rows ------------------------------------------------------------------------------------------------------------


def _worse_knobs(found: Difference) -> list[str]:
    """Return the knobs whose values differ between the regressions."""
    items = found.regressions[:MOST_ROWS]
    return [n for n in found.before.baseline if len({repr(item.config[n]) for item in items}) > 1]


def _worse(found: Difference, item: Regression) -> RegressionRow:
    if item.growth is not None:
        what, by = regressions.grew(found, item.growth), item.growth.amount
    else:
        what, by = (regressions.why_failing(item.after) if item.after else item.why), 0
    settings = tuple(Setting(value_label(item.config[n]), n in item.moves) for n in _worse_knobs(found))
    return RegressionRow(str(item.kind), what, by, settings, item.handed_over)


def _knob(change: KnobChange) -> KnobChangeRow:
    """Return a knob's classes, and its statements without its name."""
    lines = [
        Statement(line.text.removeprefix(visible(change.knob)).lstrip(" :,"), line.details)
        for line in knobs.knob(change)
    ]
    classes = [str(state.knob_class) if state else "" for state in (change.before, change.after)]
    return KnobChangeRow(change.knob, classes[0], classes[1], tuple(lines))


def _constraint(change: ConstraintChange) -> tuple[str, str, tuple[str, ...]]:
    return constraints.how(change), constraints.said(change), tuple(constraints.effect(change))
