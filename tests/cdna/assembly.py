"""Assembly text around a few instructions, and the registers after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gluonmap.cdna.generate import generate
from gluonmap.cdna.operands import EXEC, OVERFLOW
from gluonmap.cdna.program import build
from gluonmap.cdna.state import LANES, SCALARS, Waves
from gluonmap.cdna.text import read

Array = np.ndarray[Any, Any]


def text(
    instructions: str,
    target: str = "gfx942",
    threads: int = 64,
    pointers: int = 1,
    lds_bytes: int = 0,
    directives: Mapping[str, int] | None = None,
) -> str:
    """Return a kernel `k` of these instructions. s[0:1] is the argument block of 8-byte pointers, s2 the work-group."""
    known = {
        "group_segment_fixed_size": lds_bytes,
        "private_segment_fixed_size": 64,
        "kernarg_size": 8 * pointers,
        "user_sgpr_count": 2,
        "user_sgpr_kernarg_segment_ptr": 1,
        "system_sgpr_workgroup_id_x": 1,
        "system_sgpr_workgroup_id_y": 0,
        "system_sgpr_workgroup_id_z": 0,
        **(directives or {}),
    }
    body = "\n".join(
        line if line.endswith(":") else f"\t{line}" for line in map(str.strip, instructions.splitlines()) if line
    )
    arguments = "".join(
        f"      - .address_space:  global\n        .offset:         {8 * k}\n        .size:           8\n"
        "        .value_kind:     global_buffer\n"
        for k in range(pointers)
    )
    return (
        f'\t.amdgcn_target "amdgcn-amd-amdhsa--{target}"\n\t.text\nk:\n'
        f"{body}\n\ts_endpgm\n"
        '\t.section\t.rodata,"a",@progbits\n\t.amdhsa_kernel k\n'
        + "".join(f"\t\t.amdhsa_{name} {value}\n" for name, value in known.items())
        + f"\t.end_amdhsa_kernel\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .args:\n{arguments}"
        f"    .max_flat_workgroup_size: {threads}\n    .name:           k\n...\n\t.end_amdgpu_metadata\n"
    )


def execute(
    instructions: str,
    v: Mapping[int, Sequence[int] | Array | int] | None = None,
    s: Mapping[int, int | Sequence[int]] | None = None,
    *,
    target: str = "gfx942",
    exec_: int = 2**64 - 1,
    scc: bool = False,
) -> Waves:
    """Return the registers of one wave after `instructions`, which may not access memory.

    Unset registers begin as 0xdeadbeef. Scalars that are lists of n numbers make n waves, each with one of them.
    """
    program = build(read(text(instructions, target)))
    count = max((len(np.atleast_1d(value)) for value in (s or {}).values()), default=1)
    vector = np.full((max(program.registers, 16), count, LANES), 0xDEADBEEF, np.uint32)
    scalar = np.full((count, SCALARS), 0xDEADBEEF, np.uint32)
    scalar[:, EXEC : EXEC + 2] = exec_ & 0xFFFFFFFF, exec_ >> 32
    scalar[:, OVERFLOW] = 0
    for register, values in (v or {}).items():
        values = np.atleast_1d(np.asarray(values))
        vector[register, :, : len(values) if len(values) > 1 else LANES] = values
    for register, value in (s or {}).items():
        scalar[:, register] = [int(x) & 0xFFFFFFFF for x in np.atleast_1d(np.asarray(value, object))]
    waves = Waves(vector, scalar, np.full((count, 1), scc), np.arange(count))
    with np.errstate(all="ignore"):
        following: Any = 0
        steps = generate(program, sanitize=False).bind(memory=None, lds=None, scratch=None, sanitizer=None)
        while following is not None:
            following = steps[following](waves)
            if isinstance(following, tuple):
                taken, target, otherwise = following
                following = target if np.asarray(taken).all() else otherwise
    return waves
