"""What is to be audited."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gluonmap.audit.rules import Rule
from gluonmap.audit.shipped_files import Source


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be audited, and by which map."""

    sources: tuple[Source, ...] = ()
    """Files that hold entries."""
    own_list: bool = True
    """The kernel's own `@triton.autotune` list is asked for, since no file is named."""
    rules: tuple[Rule, ...] = ()
    map: str = ""
    """A map to work from; empty: the kernel's own below reports/, if there is one."""
    any_triton: bool = False
    samples: int = 4096
    """Feasible, and as many infeasible, configurations that a function is asked about at most."""


def shown_path(path: Path) -> str:
    """The path as a user standing here would type it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
