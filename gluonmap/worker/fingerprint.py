"""Identity of a compiled code object, without paths and names, and its resources.

AMD: `.text` and `.rodata` are hashed, the latter with bytes 16-23 of each kernel descriptor (symbol `*.kd`) zeroed:
the offset to the code moves with the length of the symbol's name (LLVM AMDGPU usage, "Kernel Descriptor"). NVIDIA:
`.text.*`, `.nv.constant*` and `.nv.info.*`. Debug sections, symbol names and notes are left out.
"""

from __future__ import annotations

import hashlib
import io
import struct
from typing import Any

import msgpack
import msgspec
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from gluonmap.model import targets
from gluonmap.model.verdict import Program, Resources

_DESCRIPTOR_BYTES = 64
_ENTRY_OFFSET = slice(16, 24)
_RSRC1 = 48
"""Offset in bytes of compute_pgm_rsrc1 in the descriptor; its bits 0-5 hold the vector registers in units of 8, minus
one."""
_EIATTR_REGCOUNT, _EIATTR_FRAME_SIZE = 0x2F, 0x11
_EIFMT_SVAL = 4

# No stage after LLVM IR reads these options, so equal IR under different ones is equal code. All others may reach a
# later stage and are hashed with the IR.
_SPENT_OPTIONS = frozenset({"num_stages", "matrix_instr_nonkdim", "kpack", "waves_per_eu", "schedule_hint"})


def ir_hash(text: str, options: Any) -> str:
    """Return a hash of LLVM IR and the options that later stages may read."""
    later = sorted((k, str(v)) for k, v in vars(options).items() if k not in _SPENT_OPTIONS)
    return _hash(text.encode(), repr(later).encode())


def launch_resources(metadata: Any, target: targets.Target) -> Resources:
    """Return the resources that are known with the LLVM IR: threads, shared memory, tensor memory."""
    known: dict[str, Any] = metadata if isinstance(metadata, dict) else metadata._asdict()
    return Resources(
        threads=int(known.get("num_warps") or 0) * target.warp_size,
        shared_bytes=int(known.get("shared") or 0),
        tensor_columns=int(known.get("tmem_size") or 0) if target.tensor_columns else None,
    )


def fingerprint(binary: bytes, metadata: Any, ir: str, target: targets.Target) -> tuple[Program, Resources]:
    """Return identity and resources of one code object (hsaco or cubin) with the metadata of its compile."""
    elf: Any = ELFFile(io.BytesIO(binary))
    used = launch_resources(metadata, target)
    if target.backend == "hip":
        code, descriptor, allocated = _amd_sections(elf)
        used = _amd_resources(elf, used, len(code))
        if target.waves_per_simd:  # gfx9 with 64 lanes; other generations count registers in other units
            used = _replace(used, vgpr_allocated=allocated)
    else:
        code, descriptor = _nvidia_sections(elf)
        used = _nvidia_resources(elf, used, len(code))
    # The file does not contain dynamic shared memory, threads and clusters: they are arguments of the launch.
    clusters = getattr(metadata, "num_ctas", 1), getattr(metadata, "cluster_dims", None)
    launch = repr((used.threads, used.shared_bytes, used.tensor_columns, clusters)).encode()
    program = Program(_hash(code, descriptor, launch), _hash(code), _hash(descriptor), ir)
    occupancy = targets.occupancy(target, used)
    return program, used if occupancy is None else _replace(used, occupancy=occupancy)


def _hash(*parts: bytes) -> str:
    """Return 16 hex digits of a hash over the parts and their lengths."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()[:16]


def _replace(used: Resources, **changes: Any) -> Resources:
    return msgspec.structs.replace(used, **changes)


def _amd_sections(elf: Any) -> tuple[bytes, bytes, int]:
    """Return the instructions, the constants with the descriptor (entry offset zeroed), and the reserved registers."""
    rodata = elf.get_section_by_name(".rodata")
    data = bytearray(rodata.data()) if rodata else bytearray()
    allocated = 0
    for symbol in _symbols(elf):
        start = symbol["st_value"] - rodata["sh_addr"] if symbol.name.endswith(".kd") else -1
        if 0 <= start <= len(data) - _DESCRIPTOR_BYTES:
            data[start + _ENTRY_OFFSET.start : start + _ENTRY_OFFSET.stop] = bytes(8)
            (rsrc1,) = struct.unpack_from("<I", data, start + _RSRC1)
            allocated = ((rsrc1 & 0x3F) + 1) * 8
    return elf.get_section_by_name(".text").data(), bytes(data), allocated


def _symbols(elf: Any) -> list[Any]:
    return [s for table in elf.iter_sections() if isinstance(table, SymbolTableSection) for s in table.iter_symbols()]


def _amd_resources(elf: Any, used: Resources, code_bytes: int) -> Resources:
    for section in elf.iter_sections("SHT_NOTE"):
        for note in section.iter_notes():
            if note["n_name"] != "AMDGPU":
                continue
            body = note["n_descdata"]
            kernel = msgpack.unpackb(body, strict_map_key=False)["amdhsa.kernels"][0]
            return _replace(
                used,
                vgpr=kernel[".vgpr_count"],
                agpr=kernel.get(".agpr_count"),
                sgpr=kernel[".sgpr_count"],
                spills=kernel.get(".vgpr_spill_count"),
                sgpr_spills=kernel.get(".sgpr_spill_count"),
                scratch_bytes=kernel[".private_segment_fixed_size"],
                shared_bytes=used.shared_bytes or kernel[".group_segment_fixed_size"],
                code_bytes=code_bytes,
            )
    return _replace(used, code_bytes=code_bytes)


def _nvidia_sections(elf: Any) -> tuple[bytes, bytes]:
    code = b"".join(s.data() for s in elf.iter_sections() if s.name.startswith(".text."))
    rest = [s for s in elf.iter_sections() if s.name.startswith((".nv.constant", ".nv.info."))]
    # The section header of the code holds registers and barriers, in the bits above flags and symbol index.
    heads = [(s["sh_flags"] >> 20, s["sh_info"] >> 24) for s in elf.iter_sections() if s.name.startswith(".text.")]
    return code, repr(heads).encode() + b"".join(s.data() for s in rest)


def _nvidia_resources(elf: Any, used: Resources, code_bytes: int) -> Resources:
    info = elf.get_section_by_name(".nv.info")
    values = _nv_info(info.data()) if info else {}
    frame = values.get(_EIATTR_FRAME_SIZE, 0)
    return _replace(
        used,
        vgpr=values.get(_EIATTR_REGCOUNT),
        spills=frame // 4,  # as Triton counts them: 32-bit words of local memory per thread
        scratch_bytes=frame,
        code_bytes=code_bytes,
    )


def _nv_info(data: bytes) -> dict[int, int]:
    """Return the largest value of each (function, value) attribute of a cubin's `.nv.info`."""
    values: dict[int, int] = {}
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != _EIFMT_SVAL:
            continue
        if size == 8:
            values[attribute] = max(values.get(attribute, 0), struct.unpack_from("<II", data, at)[1])
        at += size
    return values
