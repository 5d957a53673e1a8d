"""What `gluonmap find-default` says, as text and as a document."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import msgspec

from gluonmap.model.candidate import Config
from gluonmap.model.verdict import Verdict
from gluonmap.probe.campaign import Default
from gluonmap.probe.repair_baseline import Change, Mended
from gluonmap.report.map_header import baseline_facts, target_name
from gluonmap.report.plain_text import config_text, listed, plural, value_label, visible
from gluonmap.report.resources import resource_figures
from gluonmap.report.sentences import failed_phrase

_WIDTH = 100


def render(default: Default, command: str) -> str:
    """Return what the baseline does, what to change, how small that is, and the command that goes on."""
    return "\n".join(_lines(default, command)) + "\n"


def document(default: Default, command: str) -> dict[str, object]:
    """Return the same for a program; `moves` is null where nothing that passes was found."""
    space, mended = default.space, default.mended
    names = ("kernel", "file", "target", "triton", "baseline", "outcome", "reason", "because", "next_step")
    head: dict[str, object] = {name: getattr(space, name) for name in names}
    if mended is None:
        return {**head, "moves": {}, "config": space.baseline, "others": [], "asked": 0, "command": command}
    best = mended.passing[0] if mended.passing else None
    return {
        **head,
        "moves": best.moves if best else None,
        "config": {**space.baseline, **best.moves} if best else None,
        "resources": _resources(best),
        "others": [change.moves for change in mended.passing[1:]],
        **{n: getattr(mended, n) for n in ("asked", "minimal", "smaller", "smaller_tried", "smaller_forbidden")},
        "command": command if best else None,
    }


def _lines(default: Default, command: str) -> Iterator[str]:
    space, mended = default.space, default.mended
    head = f"{visible(space.kernel)} on {target_name(space.target)}: the baseline {failed_phrase(space)}"
    if mended is None:
        yield f"{head}. There is nothing to change."
        return
    yield f"{head}."
    facts = [(name, text) for name, text in baseline_facts(space) if name != "next"]
    for name, text in facts:
        yield from _folded(f"{name:<14}", text)
    yield ""
    if not mended.passing:
        yield from _none(default, mended)
        return
    best = mended.passing[0]
    yield f"Change {listed(_moved(space.baseline, best.moves))}: then it passes."
    told = list(_how_small(default, mended))
    if isinstance(best.answer, Verdict) and best.answer.resources:
        figures = resource_figures(space.target, best.answer.resources)
        told.append(", ".join(f"{figure.head} {figure.text}" for figure in figures))
    for text in told:
        yield from _folded("", text)
    yield from ("", "Go on with it", f"  {visible(command)}", "", "Or in the probe file")
    yield f"  BASELINE = {visible(repr({**space.recipe.fixed, **space.baseline, **best.moves}))}"


def _none(default: Default, mended: Mended) -> Iterator[str]:
    space = default.space
    if not mended.asked:
        yield f"No knob can mend that: {visible(space.next_step)}."
        return
    yield f"No change that passes was found: {plural(mended.asked, 'configuration')} compiled, all fail."
    yield (
        "Nothing is left to ask: give the knobs other values with --domain NAME=V1,V2,…."
        if mended.exhausted
        else "Ask on with a larger --budget, or give the knobs other values with --domain NAME=V1,V2,…."
    )


def _how_small(default: Default, mended: Mended) -> Iterator[str]:
    """How large the change is, and whether a smaller one was left out."""
    best, space = mended.passing[0], default.space
    count = len(best.moves)
    compiled = plural(mended.asked, "configuration")
    yield f"{count} of {plural(len(space.baseline), 'knob')}; {compiled} compiled."
    if others := mended.passing[1:]:
        yield f"As few knobs: {'; '.join(config_text(change.moves) for change in others)}."
    if count == 1:
        return
    if mended.minimal:
        yield "With any one of these moves left out it was compiled, and fails."
    if mended.smaller is None:
        yield "There may be a smaller change: there are too many to look at."
        return
    left = mended.smaller - mended.smaller_tried - mended.smaller_forbidden
    told = f"Of {mended.smaller:,} changes of fewer knobs {mended.smaller_tried:,} were compiled and fail"
    told += f", {mended.smaller_forbidden:,} break a demand of the source" if mended.smaller_forbidden else ""
    yield f"{told}, {left:,} were not tried." if left else f"{told}: there is no smaller one."


def _moved(baseline: Config, moves: Config) -> list[str]:
    return [f"{visible(n)} from {value_label(baseline[n])} to {value_label(v)}" for n, v in moves.items()]


def _folded(head: str, text: str) -> list[str]:
    """A fact beside its name, folded to the width."""
    lines = textwrap.wrap(visible(text), _WIDTH - len(head) - 2, break_long_words=False) or [""]
    return [f"  {head if i == 0 else ' ' * len(head)}{line}" for i, line in enumerate(lines)]


def _resources(best: Change | None) -> object:
    answer = best.answer if best else None
    return msgspec.to_builtins(answer.resources) if isinstance(answer, Verdict) and answer.resources else None
