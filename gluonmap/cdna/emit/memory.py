"""Memory accesses: calls to the launch's memories."""

from __future__ import annotations

from gluonmap.cdna.access import Access
from gluonmap.cdna.writer import Writer


def emit(out: Writer, access: Access) -> None:
    name = out.constant(access)
    match access.space, access.action:
        case "scalar", _:
            out.line(f"memory.scalar_load(w, {name})")
            assert access.data
            if access.data[0] + access.size // 4 > 124:
                out.line("w.refresh(); W = w.mask")
        case "scratch", _:
            out.line(f"scratch.access(w, {name})")
        case "lds", "atomic":
            out.line(f"lds.atomic(w, {name})")
        case "lds", action:
            out.line(f"lds.{action}(w, {name})")
        case _, "load" if access.to_lds:
            out.line(f"memory.copy_to_lds(w, {name})")
        case _, action:
            out.line(f"memory.{action}(w, {name})")
