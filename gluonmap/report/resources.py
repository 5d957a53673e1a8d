"""Resources of a program (registers, shared memory, …) in the words of the target's maker."""

from __future__ import annotations

from dataclasses import dataclass

from gluonmap.model.verdict import Resources


@dataclass(frozen=True, slots=True)
class Figure:
    """One number about one program, with its head: a resource, or a count of a run on the CPU."""

    head: str
    text: str
    alarm: bool = False
    """Costs speed for sure: something is spilled."""
    worse: bool = False
    """Clearly more costly than the baseline's."""


_RESOURCES: dict[str, tuple[str, str, str, str, bool]] = {
    "vgpr": ("VGPR", "registers", "", "", False),
    "vgpr_allocated": ("VGPR reserved", "VGPR reserved", "", "", False),
    "agpr": ("AGPR", "AGPR", "", "", False),
    "sgpr": ("SGPR", "SGPR", "", "", False),
    "spills": ("spills", "spills", "", " B", True),
    "sgpr_spills": ("SGPR spills", "SGPR spills", "", "", True),
    "scratch_bytes": ("scratch", "scratch", " B", " B", True),
    "shared_bytes": ("LDS", "shared", " B", " B", False),
    "tensor_columns": ("tensor columns", "tensor columns", "", "", False),
    "occupancy": ("waves/SIMD", "waves/SIMD", "", "", False),
    "threads": ("threads", "threads", "", "", False),
    "code_bytes": ("code", "code", " B", " B", False),
}
"""Field of `Resources` -> its name and its unit for AMD and for NVIDIA, and whether any of it costs speed for sure."""

RESOURCE_FIELDS = tuple(_RESOURCES)
"""In the order of the reports."""


def resource_name(target_name: str, field: str) -> tuple[str, str]:
    """Return the name and the unit of a field of `Resources`, in the words of the target's maker."""
    amd, nvidia, amd_unit, nvidia_unit, _ = _RESOURCES[field]
    return (amd, amd_unit) if target_name.startswith("gfx") else (nvidia, nvidia_unit)


def resource_figures(target_name: str, found: Resources) -> list[Figure]:
    """Return the resources that the back end reported, in a fixed order, in the words of the target's maker."""
    rows = [(*resource_name(target_name, field), getattr(found, field), _RESOURCES[field][-1]) for field in _RESOURCES]
    return [Figure(h, f"{n:,}{unit}", alarm and n > 0) for h, unit, n, alarm in rows if n is not None]
