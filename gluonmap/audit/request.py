"""The question of an audit: files with entries, and rules that drop configurations."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from gluonmap.audit.findings import ShippedPlace
from gluonmap.audit.shipped_files import ShippedFile
from gluonmap.model.candidate import Value


class PruningRule(msgspec.Struct, frozen=True):
    """A list of restrictions or a pruning function, with which a project drops configurations."""

    name: str
    """Name that the user gave: a file, a file with a function, or the text of a --restriction."""
    places: tuple[ShippedPlace, ...] = ()
    """The place of each restriction, or of the function."""
    restrictions: tuple[str, ...] = ()
    """Expressions; empty for a function."""
    file: str = ""
    """File of the function."""
    function: str = ""
    domains: dict[str, tuple[Value, ...]] = {}
    """Knob → the values that the rule covers. A knob that is missing is covered whole."""


@dataclass(frozen=True, slots=True)
class AuditRequest:
    """Files and rules to audit, and the map to judge them by."""

    sources: tuple[ShippedFile, ...] = ()
    """Files that hold entries."""
    own_list: bool = True
    """The kernel's own `@triton.autotune` list is audited, since no file is named."""
    rules: tuple[PruningRule, ...] = ()
    map: str = ""
    """The map to judge by; empty: the kernel's own map below reports/, if there is one."""
    any_triton: bool = False
    samples: int = 4096
    """Most feasible configurations that a function is asked about; as many infeasible ones are added at most."""
