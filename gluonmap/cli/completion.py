"""Completion after TAB: targets, and the knobs of a map with their values. An unreadable map offers nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gluonmap.model.errors import GluonmapError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gluonmap.model.space_map import SpaceMap


def targets(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names and aliases of targets; in a comma-separated list, for the part after the last comma."""
    from click.shell_completion import CompletionItem

    from gluonmap.model.targets import TARGETS

    before, comma, begun = incomplete.rpartition(",")
    given = set(before.split(","))
    names = [(name, t) for t in TARGETS for name in t.names if name not in given]
    return [
        CompletionItem(before + comma + name, help=f"{t.vendor}, {t.shared_bytes:,} bytes of shared memory")
        for name, t in names
        if name.startswith(begun)
    ]


def moves(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return KNOB=VALUE for each value of the map on the command line, with its outcome as help.

    bash splits words at `=` (COMP_WORDBREAKS): then the knob is already a word of the command line, and only the value
    is completed.
    """
    from click.shell_completion import CompletionItem

    space = _map_of(ctx)
    if space is None:
        return []
    words = [word for word in ctx.params.get("moves") or () if word]
    knob = words[-2] if words[-1:] == ["="] and len(words) > 1 else words[-1] if words else ""
    alone = knob in space.knobs
    offered = []
    for name, text, said in _values(space):
        whole = text if alone else f"{name}={text}"
        if (name == knob or not alone) and whole.startswith(incomplete):
            offered.append(CompletionItem(whole, help=said))
    return offered


def _map_of(ctx: click.Context) -> SpaceMap | None:
    from gluonmap.model import codec

    try:
        return codec.read_map(Path(ctx.params["map_file"]))
    except (GluonmapError, KeyError, TypeError, OSError):
        return None


def _values(space: SpaceMap) -> Iterator[tuple[str, str, str]]:
    """Yield knob, value as the user types it, and outcome of each value."""
    from gluonmap.model.knobs import Effect
    from gluonmap.probe.spelling import spelled

    for name, knob in space.knobs.items():
        for value in knob.values:
            said = "baseline" if value.effect is Effect.BASELINE else value.outcome
            yield name, spelled(value.value), f"{said}: {value.reason}" if value.reason else said
