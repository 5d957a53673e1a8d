"""Differences between two maps that are no findings, and notes that a reader needs to trust the comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from gluonmap.diff.bridge import Bridge
from gluonmap.model import targets
from gluonmap.model.candidate import Config, Stage, Value
from gluonmap.model.joint_map import Joint, Standing
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.space_map import SpaceMap

CAUSES = ("kernel", "target", "Triton", "source", "arguments", "fixed", "derived")
"""Circumstances that can change what is compiled."""


class MapSide(msgspec.Struct, frozen=True):
    """One of the two maps."""

    kernel: str
    file: str
    target: str
    triton: str
    baseline: Config
    outcome: str
    """Outcome of the baseline."""
    stable: bool | None
    depth: str
    """"singles", "joint" or "deep"."""
    stage: str
    """Last stage that was asked for."""


class Circumstance(msgspec.Struct, frozen=True):
    """A difference that is no finding, and may be the cause of one."""

    name: str
    """kernel, file, target, Triton, source, arguments, sizes, grid, fixed, derived, restrictions, baseline, depth,
    stage, sanitizer, device."""
    before: str
    after: str


def vendor(space: SpaceMap) -> str:
    """Return the vendor of the map's target."""
    return targets.find(space.target).vendor


def stage(space: SpaceMap) -> Stage:
    """Return the last stage that was asked for."""
    return space.execution.stage if space.execution else Stage.COMPILE


def watched(space: SpaceMap) -> bool:
    """Return whether the sanitizer watched the executions."""
    return space.recipe.trial is not None and space.recipe.trial.watch.sanitize


def depth(space: SpaceMap) -> str:
    """Return how many knobs were turned at once: "singles", "joint" or "deep"."""
    return space.joint.depth if space.joint else "singles"


def map_side(space: SpaceMap) -> MapSide:
    """Return the map without its findings."""
    return MapSide(
        space.kernel, space.file, space.target, space.triton, space.baseline, space.outcome, space.stable,
        depth(space), stage(space).value,
    )  # fmt: skip


def circumstances(bridge: Bridge) -> Iterator[Circumstance]:
    """Yield the circumstances that differ, the weightiest first."""
    before, after = bridge.before, bridge.after
    yield from _text("kernel", before.kernel, after.kernel)
    yield from _text("file", before.file, after.file)
    yield from _text("target", before.target, after.target)
    yield from _text("Triton", before.triton, after.triton)
    if before.source and after.source and sorted(before.source.values()) != sorted(after.source.values()):
        yield from _entries("source", before.source, after.source)
    yield from _entries("arguments", before.specialisation, after.specialisation)
    yield from _entries("sizes", before.shape, after.shape)
    yield from _text("grid", before.recipe.grid, after.recipe.grid)
    yield from _entries("fixed", before.recipe.fixed, after.recipe.fixed)
    yield from _entries("derived", before.recipe.derive, after.recipe.derive)
    if before.joint and after.joint:
        yield from _text("restrictions", _restrictions(before.joint), _restrictions(after.joint))
    yield from _entries("baseline", *({n: space.baseline[n] for n in bridge.shared} for space in (before, after)))
    yield from _text("depth", depth(before), depth(after))
    yield from _text("stage", stage(before), stage(after))
    if before.execution and after.execution:
        yield from _text("sanitizer", *("watched" if watched(space) else "no" for space in (before, after)))
        yield from _text("device", before.execution.device, after.execution.device)


def _text(name: str, before: str, after: str) -> Iterator[Circumstance]:
    if before != after:
        yield Circumstance(name, str(before), str(after))


def _entries(name: str, before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[Circumstance]:
    """Yield one circumstance with the entries that differ between two dictionaries."""
    names = [n for n in dict.fromkeys((*before, *after)) if repr(before.get(n, ...)) != repr(after.get(n, ...))]
    texts = ("; ".join(f"{n}: {d[n]}" if n in d else f"no {n}" for n in names) for d in (before, after))
    if names:
        yield Circumstance(name, *texts)


def _restrictions(joint: Joint) -> str:
    return "; ".join(sorted({item.words for item in joint.constraints if item.standing is Standing.GIVEN})) or "none"


def notes(bridge: Bridge, found: Sequence[Circumstance]) -> Iterator[str]:
    """Yield the notes that a reader needs to trust the comparison; `found` are its circumstances."""
    before, after = bridge.before, bridge.after
    causes = [item.name for item in found if item.name in CAUSES]
    if before.kernel != after.kernel and Path(before.file).name != Path(after.file).name:
        yield "these seem to be two kernels, and no two states of one"
    if not {before.outcome, after.outcome} <= set(COMPILED):
        yield "a map whose baseline fails knows nothing else: only the baselines are compared"
    if not bridge.one_baseline:
        yield (
            "the baselines differ, so single values are moves from different configurations: whether they pass is "
            "compared all the same, what they change is not. A regression is always one of equal configurations"
        )
    if len(causes) > 1:
        yield f"{', '.join(causes[:-1])} and {causes[-1]} differ at once: no difference can be put down to one of them"
    if not before.source or not after.source:
        yield "a map does not record the source that it was made from: whether the kernel has changed is not known"
    for name, space in (("A", before), ("B", after)):
        if space.joint is None and space.outcome in COMPILED:
            yield f"{name} knows one knob at a time only, so no whole spaces are compared: probe with --depth joint"
        if space.unanswered or (space.joint and space.joint.stopped):
            yield f"{name} is incomplete: its probe ended before its time"
        if space.stable is False:
            yield f"{name} is of unstable code: two compiles gave two programs, so equal ones prove nothing there"
    if vendor(before) != vendor(after):
        yield "registers and spills of different makers are different things: resources are not compared"
    if stage(before) is not stage(after):
        yield "only one map was executed that far: a failure there alone is reported, and is no regression"
    elif watched(before) is not watched(after):
        yield "the sanitizer watched one map only: unsafe code there alone is reported, and is no regression"
    elif stage(before) is Stage.TIME:
        yield "times are not compared: two runs drift. gluonmap race compares programs in turns"
