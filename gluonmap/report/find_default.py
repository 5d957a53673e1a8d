"""The answer of `gluonmap find-default`, as text and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.verdict import Verdict
from gluonmap.model.wording import listed
from gluonmap.probe.find_default import DefaultSearch
from gluonmap.probe.repair_baseline import BaselineChange, BaselineRepair
from gluonmap.report.map_header import baseline_facts, target_name
from gluonmap.report.plain_text import config_text, plural, value_label, visible
from gluonmap.report.resources import resource_figures
from gluonmap.report.sentences import failed_phrase

_WIDTH = 100


def render(default: DefaultSearch, command: str) -> str:
    """Return what the baseline does, what to change, how small that is, and the command that goes on."""
    return "\n".join(_lines(default, command)) + "\n"


def document(default: DefaultSearch, command: str) -> dict[str, object]:
    """Return the same for a program; `moves` is null where nothing that passes was found."""
    space, repair = default.space, default.repair
    names = ("kernel", "file", "target", "triton", "baseline", "outcome", "reason", "because", "next_step")
    head: dict[str, object] = {name: getattr(space, name) for name in names}
    if repair is None:
        return {**head, "moves": {}, "config": space.baseline, "others": [], "asked": 0, "command": command}
    best = repair.passing[0] if repair.passing else None
    return {
        **head,
        "moves": best.moves if best else None,
        "config": {**space.baseline, **best.moves} if best else None,
        "resources": _resources(best),
        "others": [change.moves for change in repair.passing[1:]],
        **{n: getattr(repair, n) for n in ("asked", "minimal", "smaller", "smaller_tried", "smaller_forbidden")},
        "command": command if best else None,
    }


def _lines(default: DefaultSearch, command: str) -> Iterator[str]:
    space, repair = default.space, default.repair
    head = f"{visible(space.kernel)} on {target_name(space.target)}: the baseline {failed_phrase(space)}"
    if repair is None:
        yield f"{head}. There is nothing to change."
        return
    yield f"{head}."
    facts = [(name, text) for name, text in baseline_facts(space) if name != "next"]
    for name, text in facts:
        yield from _folded(f"{name:<14}", text)
    yield ""
    if not repair.passing:
        yield from _none(default, repair)
        return
    best = repair.passing[0]
    yield f"Change {listed(_moved(space.baseline, best.moves))}: then it passes."
    details = list(_how_small(default, repair))
    if isinstance(best.answer, Verdict) and best.answer.resources:
        figures = resource_figures(space.target, best.answer.resources)
        details.append(", ".join(f"{figure.head} {figure.text}" for figure in figures))
    for text in details:
        yield from _folded("", text)
    yield from ("", "Next command", f"  {visible(command)}", "", "Or in the probe file")
    yield f"  BASELINE = {visible(repr({**space.recipe.fixed, **space.baseline, **best.moves}))}"


def _none(default: DefaultSearch, repair: BaselineRepair) -> Iterator[str]:
    space = default.space
    if not repair.asked:
        yield f"No change of a knob can fix that: {visible(space.next_step)}."
        return
    yield f"No change that passes was found: {plural(repair.asked, 'configuration')} compiled, all fail."
    yield (
        "Nothing is left to ask: give the knobs other values with --domain NAME=V1,V2,…."
        if repair.exhausted
        else "Continue with a larger --budget, or give the knobs other values with --domain NAME=V1,V2,…."
    )


def _how_small(default: DefaultSearch, repair: BaselineRepair) -> Iterator[str]:
    """Yield the size of the change, and whether a smaller one may exist."""
    best, space = repair.passing[0], default.space
    count = len(best.moves)
    compiled = plural(repair.asked, "configuration")
    yield f"{count} of {plural(len(space.baseline), 'knob')}; {compiled} compiled."
    if others := repair.passing[1:]:
        yield f"As few knobs: {'; '.join(config_text(change.moves) for change in others)}."
    if count == 1:
        return
    if repair.minimal:
        yield "With any one of these moves left out it was compiled, and fails."
    if repair.smaller is None:
        yield "There may be a smaller change: there are too many to look at."
        return
    left = repair.smaller - repair.smaller_tried - repair.smaller_forbidden
    tried = f"Of {repair.smaller:,} changes of fewer knobs {repair.smaller_tried:,} were compiled and fail"
    tried += f", {repair.smaller_forbidden:,} break a demand of the source" if repair.smaller_forbidden else ""
    yield f"{tried}, {left:,} were not tried." if left else f"{tried}: there is no smaller one."


def _moved(baseline: Config, moves: Config) -> list[str]:
    return [f"{visible(n)} from {value_label(baseline[n])} to {value_label(v)}" for n, v in moves.items()]


def _folded(head: str, text: str) -> list[str]:
    """Return a fact next to its name, folded to the width."""
    lines = textwrap.wrap(visible(text), _WIDTH - len(head) - 2, break_long_words=False) or [""]
    return [f"  {head if i == 0 else ' ' * len(head)}{line}" for i, line in enumerate(lines)]


def _resources(best: BaselineChange | None) -> object:
    answer = best.answer if best else None
    return msgspec.to_builtins(answer.resources) if isinstance(answer, Verdict) and answer.resources else None
