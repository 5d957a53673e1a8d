"""Sentences about a run: what its questions cover, and what a reader must know first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gluonmap.acquire.coverage import Cells
from gluonmap.acquire.evidence import PASSED
from gluonmap.acquire.learner import Learner
from gluonmap.model.joint_map import CoverageCount

_ORDER = {1: "value", 2: "value pair", 3: "value triple"}


def structural(learner: Learner, coverage: Sequence[CoverageCount]) -> list[str]:
    """Return sentences about the combinations that were tried. They hold independently of the draws."""
    found = []
    for item in coverage:
        if item.order == 1:
            continue
        what = _ORDER[item.order]
        if item.seen == item.possible:
            found.append(f"Every {what} was seen passing or is ruled out by a named constraint.")
        else:
            found.append(f"Of {item.possible:,} {what}s that no constraint rules out, {item.seen:,} were seen passing.")
    left = _untried_repairs(learner)
    if left == 0:
        found.append("Every value that fails by itself was tried beside every single value of every other knob.")
    else:
        found.append(f"Values that fail by themselves were not tried beside {left} single values of other knobs.")
    return found


def _untried_repairs(learner: Learner) -> int:
    """Return the number of pairs (failing value, value of another knob) that never occurred together in a failure."""
    evidence, space = learner.evidence, learner.space
    failed = evidence.rows[evidence.labels > PASSED]
    left = 0
    for atom in learner.model.atoms():
        columns = tuple(atom.columns)
        if len(columns) != 1:
            continue
        cells = Cells(space, 1, columns[0])
        values = np.zeros((space.sizes[columns[0]], len(space.names)), np.int16)
        values[:, columns[0]] = np.arange(len(values))
        failing = set(np.flatnonzero(atom.fails(values)).tolist())
        mine = failed[np.isin(failed[:, columns[0]], list(failing))]
        others = sum(size for column, size in enumerate(space.sizes) if column != columns[0])
        left += len(failing) * others - int(cells.seen(mine).sum())
    return left


def notes(learner: Learner, size: int, feasible: int | None) -> Iterator[str]:
    """Yield the most important facts about a run, with the next step."""
    evidence = learner.evidence
    passed = int((evidence.labels == PASSED).sum())
    yield from _about_baseline(learner, passed)
    if evidence.unstable:
        yield (
            f"{len(evidence.unstable)} configurations were answered in two ways; they were left out of all fitting. "
            "A kernel that does so is worth a look before it is tuned: `gluonmap repeat MAP KNOB=VALUE` repeats one."
        )
    yield from _about_extremes(learner, passed, size, feasible)
    unknown = sum(not answer.known for answer in evidence.answers)
    if unknown:
        yield f"{unknown} configurations had no answer that is evidence (deadline, fault): nothing follows from them."
    if evidence.budget is not None and learner.model.formula is None and len(evidence.shared_bytes()[0]) >= 10:
        yield (
            "The bytes of shared memory that the compiler reported follow no formula of this language; "
            "the budget is learned from passes and failures alone."
        )
    if learner.may_learn <= 0 and not learner.enumerated:
        yield (
            f"All {learner.settings.budget} questions for learning were used; the coverage lists what was not yet seen "
            "together. Continue with a larger --budget: known answers are not asked again."
        )


def _about_baseline(learner: Learner, passed: int) -> Iterator[str]:
    first = next((record for record in learner.records if record.row == learner.baseline), None)
    if first is None or first.answer.passed:
        return
    outcome = first.answer.outcome or "without an answer"
    reason = f" ({first.answer.reason.strip().splitlines()[0]})" if first.answer.reason.strip() else ""
    others = len(learner.evidence) - 1
    if passed == 0 or learner.settings.needs_baseline:
        tried = f", and none of {others} others asked passes: no passing one is known" if others and not passed else ""
        yield (
            f"The baseline is {outcome}{reason}{tried}. Nothing can be learned around it: look at the baseline by "
            "itself first: `gluonmap probe KERNEL --depth singles`."
        )
        return
    nearest = min(
        (record for record in learner.records if record.answer.passed),
        key=lambda record: sum(a != b for a, b in zip(record.row, first.row, strict=True)),
    )
    moves = ",".join(
        f"{name}={learner.space.decode(nearest.row)[name]}"
        for name, a, b in zip(learner.space.names, nearest.row, first.row, strict=True)
        if a != b
    )
    yield (
        f"The baseline is {outcome}{reason}. The nearest configuration that passed differs in {moves}: "
        f"start from it with --baseline {moves}."
    )


def _about_extremes(learner: Learner, passed: int, size: int, feasible: int | None) -> Iterator[str]:
    asked = len(learner.evidence)
    if passed == asked and asked:
        yield (
            f"Everything passes: all {asked} configurations asked, out of {size:,}. No knob constrains another here; "
            "widen the domains with --domain to find the limits."
        )
    elif passed == 1:
        rest = "" if feasible in (None, 1) else f" The map still allows {feasible:,}; none of those tried did."
        yield (
            f"Nothing but one configuration passes, of {asked} asked out of {size:,}: nothing to tune here.{rest} "
            "The constraints say which literals of the kernel hold it there."
        )
