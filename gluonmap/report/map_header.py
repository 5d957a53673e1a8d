"""The head of a report on one map: target, arguments, launch, the baseline's program; and why a baseline fails."""

from __future__ import annotations

from gluonmap.model import targets
from gluonmap.model.space_map import SpaceMap
from gluonmap.report.plain_text import config_text, location, visible

NEXT_STEP = "Start from a configuration that passes: give another baseline, or repair the kernel, and probe again."


def target_name(name: str) -> str:
    """Return "gfx950 (cdna4)" for "gfx950"."""
    return visible(name) + (f" ({alias})" if (alias := alias_of(name)) else "")


def alias_of(name: str) -> str:
    """Return "cdna4" for "gfx950"; "" for a target without an alias, and for a map's target that is not known here."""
    known = targets.named(name)
    return known.alias if known else ""


def specialisation_text(space: SpaceMap) -> str:
    """Return "*u8: a_ptr, b_ptr; i32 divisible by 16: M, N", groups by first appearance."""
    groups: dict[str, list[str]] = {}
    for name, kind in space.specialisation.items():
        groups.setdefault(_argument(visible(kind)), []).append(visible(name))
    return "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items())


def _argument(kind: str) -> str:
    base, colon, hint = kind.rpartition(":")
    meaning = {"16": "divisible by 16", "1": "equal to 1"}.get(hint.strip()) if colon else None
    return f"{base.strip()} {meaning}" if meaning else kind


def launch_text(space: SpaceMap) -> str:
    """Return "M=4096, N=512; grid 256 × 1 × 1", as far as known."""
    grid = "grid " + " × ".join(map(str, (*space.grid, 1, 1)[:3])) if space.grid is not None else ""
    return "; ".join(part for part in (config_text(space.shape), grid) if part)


def program_identity(space: SpaceMap) -> str:
    """Return the baseline's short digest and whether two compiles agreed on it."""
    said = {True: "two compiles agree", False: UNSTABLE, None: "compiled once; stability was not checked"}[space.stable]
    return f"{space.digest[:8]}, {said}" if space.digest else said


UNSTABLE = "UNSTABLE: two compiles of the baseline differ, so equal or different programs prove nothing here"


def baseline_facts(space: SpaceMap) -> list[tuple[str, str]]:
    """Return what is known of a failing baseline: where, how, why, what forbids it, and what to do next."""
    how = " ".join(part for part in (space.kind, f"({space.stage})" if space.stage else "") if part)
    status = f"exit status {space.exit_status}" if space.exit_status is not None else ""
    facts = [
        ("where", location(space.file, space.line) if space.line is not None else ""),
        ("how", ", ".join(part for part in (how, status) if part)),
        ("why", "\n".join(visible(line) for line in space.reason.splitlines()).strip()),
        ("forbidden by", "; ".join(space.because)),
        ("next", space.next_step or NEXT_STEP),
    ]
    return [(name, text) for name, text in facts if text]
