"""The one table of targets: names, limits, compiler options that are knobs, and the parts of Gluon's API that compile.

Every other fact about a target is derived from `TARGETS`: a new target is one more row.
The installed Triton decides which options exist (`worker` reads its option dataclass); the table says which of their
values are worth trying. Limits: AMD "CDNA3/CDNA4 ISA" guides and LLVM's AMDGPU usage page; NVIDIA CUDA C++ Programming
Guide, technical specifications per compute capability.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from gluonmap.model.candidate import Value
from gluonmap.model.errors import UnknownTarget
from gluonmap.model.verdict import Resources

LAUNCH_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
"""Options that `triton.Config` takes by keyword. Every back end has at least the first three."""


@dataclass(frozen=True, slots=True)
class Target:
    """One architecture that Triton can compile for."""

    name: str
    alias: str
    """Second name, which reports print in brackets and the command line accepts; "": none."""
    devices: tuple[str, ...]
    """Marketing names of GPUs that have it, in lower case."""
    backend: str
    """Triton's name of the back end: "hip" or "cuda"."""
    arch: str | int
    """The architecture as Triton's `GPUTarget` takes it."""
    warp_size: int
    shared_bytes: int
    """Largest shared memory (LDS) of one work-group."""
    gluon_api: frozenset[str]
    """Groups of Gluon's API that compile here, as the rules of `source.target_api` name them."""
    predates_api: str = ""
    """Module of Gluon's API that was written for the next generation, though some of its functions compile here."""
    executed_on_cpu: bool = False
    """`cdna` executes its machine code."""
    uses_kpack: bool = False
    """The option `kpack` has an effect here, so that a launch elsewhere need not name it."""
    threads: int = 1024
    """Most threads of one work-group, worker partitions included."""
    tensor_columns: int = 0
    """Columns of tensor memory; 0: it has none."""
    registers: int = 0
    """32-bit registers of one multiprocessor (NVIDIA): registers per thread times threads must fit."""
    waves_per_simd: int = 0
    """Most waves of one SIMD (AMD); 0: `occupancy` does not know the target."""
    vgprs_per_simd: int = 0
    """Vector registers of one lane slot that the waves of a SIMD share."""
    option_domains: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    """Compiler option -> the values that are worth trying; any other option is no knob here."""
    warps_per_sm: int = 0
    """Most warps of one multiprocessor (NVIDIA); 0: `resident_warps` does not know the target."""
    blocks_per_sm: int = 0
    shared_per_sm: int = 0
    """Bytes, of which each block costs one KiB more than it asks for (NVIDIA)."""

    @property
    def vendor(self) -> str:
        """Return the maker: "AMD" or "NVIDIA"."""
        return "AMD" if self.backend == "hip" else "NVIDIA"

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that the command line lists and completes: the target's own, and its alias if it has one."""
        return (self.name, self.alias) if self.alias else (self.name,)


_WARPS: tuple[Value, ...] = (1, 2, 4, 8, 16)
_STAGES: tuple[Value, ...] = (1, 2, 3, 4)
_AMD_OPTIONS: dict[str, tuple[Value, ...]] = {
    "num_warps": _WARPS,
    "num_stages": _STAGES,
    "waves_per_eu": (0, 1, 2, 3, 4),
    "matrix_instr_nonkdim": (0, 16, 32),
    "kpack": (1, 2),
}
_NVIDIA_OPTIONS: dict[str, tuple[Value, ...]] = {
    "num_warps": _WARPS,
    "num_stages": _STAGES,
    "num_ctas": (1, 2, 4),
    "maxnreg": (None, 128, 168, 255),
}

_HINTS: dict[str, tuple[Value, ...]] = {"schedule_hint": ("none", "attention", "memory-bound-attention")}

TARGETS: tuple[Target, ...] = (
    Target(
        name="gfx942",
        alias="cdna3",
        devices=("mi300a", "mi300x", "mi308x", "mi325x"),
        backend="hip",
        arch="gfx942",
        warp_size=64,
        shared_bytes=65_536,
        gluon_api=frozenset({"amd", "amd.cdna3"}),
        # Some of cdna4's functions compile here for narrow copies; a kernel that calls them is not meant for gfx942.
        predates_api="cdna4",
        executed_on_cpu=True,
        uses_kpack=True,
        waves_per_simd=8,
        vgprs_per_simd=512,
        option_domains=_AMD_OPTIONS | _HINTS,
    ),
    Target(
        name="gfx950",
        alias="cdna4",
        devices=("mi350x", "mi355x"),
        backend="hip",
        arch="gfx950",
        warp_size=64,
        shared_bytes=163_840,
        gluon_api=frozenset({"amd", "amd.cdna3", "amd.cdna4"}),
        executed_on_cpu=True,
        waves_per_simd=8,
        vgprs_per_simd=512,
        option_domains=_AMD_OPTIONS | _HINTS,
    ),
    Target(
        name="gfx1250",
        alias="",
        devices=(),
        backend="hip",
        arch="gfx1250",
        warp_size=32,
        shared_bytes=327_680,
        gluon_api=frozenset({"amd", "amd.cdna5"}),
        option_domains=_AMD_OPTIONS | {"num_ctas": (1, 2, 4)},
    ),
    Target(
        name="sm_90",
        alias="hopper",
        devices=("h100", "h200"),
        backend="cuda",
        arch=90,
        warp_size=32,
        shared_bytes=232_448,
        gluon_api=frozenset({"nvidia", "nvidia.hopper"}),
        registers=65_536,
        option_domains=_NVIDIA_OPTIONS,
        warps_per_sm=64,
        blocks_per_sm=32,
        shared_per_sm=233_472,
    ),
    Target(
        name="sm_100",
        alias="blackwell",
        devices=("b200", "gb200"),
        backend="cuda",
        arch=100,
        warp_size=32,
        shared_bytes=232_448,
        gluon_api=frozenset({"nvidia", "nvidia.blackwell"}),
        tensor_columns=512,
        registers=65_536,
        option_domains=_NVIDIA_OPTIONS,
        warps_per_sm=64,
        blocks_per_sm=32,
        shared_per_sm=233_472,
    ),
)

NOT_KNOBS: dict[str, str] = {
    "allow_flush_denorm": "changes numbers",
    "allowed_dot_input_precisions": "changes numbers",
    "arch": "is the target",
    "backend_name": "is the target",
    "base_arch": "is the target",
    "clc": "is launch plumbing",
    "debug": "changes what is checked",
    "default_dot_input_precision": "changes numbers",
    "deprecated_fp8_dot_operand_dtypes": "describes the target",
    "enable_fp_fusion": "changes numbers",
    "enable_reflect_ftz": "changes numbers",
    "extern_libs": "names files",
    "fpsan_homomorphic_casts": "changes what is checked",
    "instrumentation_mode": "changes what is checked",
    "ir_override": "names a file",
    "launch_cooperative_grid": "is launch plumbing",
    "launch_pdl": "is launch plumbing",
    "llvm_fn_attrs": "is free text for the compiler",
    "max_num_imprecise_acc_default": "changes numbers",
    "maxnreg": "is not this target's",
    "min_shared_mem": "pads shared memory",
    "num_ctas": "needs clusters of work-groups, which this target lacks",
    "ptx_options": "is free text for the assembler",
    "ptx_version": "is the assembler's version",
    "sanitize_overflow": "changes what is checked",
    "sched4reg": "is experimental",
    "supported_fp8_dtypes": "describes the target",
    "warp_size": "is the target",
    "wgp_cu_mode": "is not this target's",
}
"""Options that exist and are no knobs -> why not: turning them changes numbers, or does nothing that a tuner wants."""

# schedule_hint lost its effect after 3.6 ("right now no effect", triton/backends/amd/compiler.py of 3.9.0). Its default
# is then the empty text, and there is nothing to turn.
_RETIRED_DEFAULT = {"schedule_hint": ""}


def find(name: str) -> Target:
    """Return the target with that name, alias or device ("gfx942", "cdna3", "sm90", "MI300X").

    Raises:
        UnknownTarget: no such target.
    """
    wanted = name.strip().lower()
    for target in TARGETS:
        if wanted in {*target.names, target.name.replace("_", ""), *target.devices}:
            return target
    known = [t.name for t in TARGETS] + [t.alias for t in TARGETS if t.alias]
    raise UnknownTarget("gluonmap", name, known, "gluonmap targets lists them with their limits.")


def named(name: str) -> Target | None:
    """Return the target whose canonical name this is; None: this gluonmap knows no such target."""
    return next((target for target in TARGETS if target.name == name), None)


def name_of(backend: str, arch: str | int) -> str:
    """Return the canonical name for Triton's back end and architecture ("cuda", 90: "sm_90").

    AMD's architecture may carry feature flags after a colon ("gfx942:sramecc+:xnack-"), which are not part of the name.
    """
    stem = str(arch).partition(":")[0]
    return f"sm_{stem}" if backend == "cuda" else stem


def executed_on_cpu() -> tuple[str, ...]:
    """Return the names of the targets whose machine code `cdna` executes."""
    return tuple(target.name for target in TARGETS if target.executed_on_cpu)


def option_domain(target: Target, option: str, default: Value) -> tuple[Value, ...] | None:
    """Return the domain of a compiler option on `target` with its default in it; None where it is no knob."""
    domain = target.option_domains.get(option)
    if domain is None or _RETIRED_DEFAULT.get(option, domain) == default:
        return None
    return domain if default in domain else (default, *domain)


def why_not_a_knob(target: Target, option: str) -> str:
    """Return why an existing option is not probed on `target`."""
    if option in _RETIRED_DEFAULT:
        return "has no effect in this Triton"
    return NOT_KNOBS.get(option, "is not known to be worth turning")


def over_budget(target: Target, used: Resources) -> str:
    """Return the hardware budget that `used` exceeds, in words; "" where it fits.

    An impossible shared-memory size (negative, from a 32-bit wrap in the compiler) is over budget too.
    """
    if used.shared_bytes < 0:
        return f"shared memory of {used.shared_bytes} bytes: the size wrapped, so it is over any limit"
    if used.shared_bytes > target.shared_bytes:
        return f"{used.shared_bytes:,} bytes of shared memory > {target.shared_bytes:,}"
    if used.threads > target.threads:
        return f"{used.threads:,} threads > {target.threads:,}"
    if target.tensor_columns and (used.tensor_columns or 0) > target.tensor_columns:
        return f"{used.tensor_columns} columns of tensor memory > {target.tensor_columns}"
    if target.registers and used.vgpr:
        # The hardware allocates registers in units of 8 per thread.
        total = -(-used.vgpr // 8) * 8 * used.threads
        if total > target.registers:
            return f"{used.vgpr} registers x {used.threads} threads = {total:,} > {target.registers:,}"
    return ""


def occupancy(target: Target, used: Resources) -> int | None:
    """Return the waves per SIMD that fit by registers and LDS; None for a target without `waves_per_simd`.

    As on gfx942 and gfx950: the hardware allocates VGPRs in units of 8 from a file of 512 that vector and accumulation
    registers share, for at most 8 waves; a compute unit has 4 SIMDs and one LDS. 0: not even one work-group fits.
    """
    registers = used.vgpr_allocated or used.vgpr
    if not target.waves_per_simd or not registers:
        return None
    waves_of_group = -(-used.threads // target.warp_size)
    by_registers = min(target.waves_per_simd, target.vgprs_per_simd // (-(-registers // 8) * 8))
    groups = by_registers * 4 // waves_of_group
    if used.shared_bytes > 0:
        groups = min(groups, target.shared_bytes // used.shared_bytes)
    return min(by_registers, -(-groups * waves_of_group // 4)) if groups else 0


def resident_warps(target: Target, used: Resources) -> int | None:
    """Return the warps that fit on one multiprocessor by registers, shared memory and blocks; None where not known.

    By the limits of compute capabilities 9.0 and 10.0 (CUDA C++ Programming Guide) and the driver's granularity: a warp
    gets registers in units of 256, from four equal parts of the file, and a block gets shared memory in units of 128
    bytes. The driver of an H200 reported the same for 58 programs of 1 to 32 warps, each with 15 sizes of shared
    memory. Programs that use tensor memory are left out: its columns are taken while they run. 0: not even one block.
    """
    if not target.warps_per_sm or not used.vgpr or used.tensor_columns or used.shared_bytes < 0:
        return None
    warps = -(-used.threads // target.warp_size)
    registers_of_warp = -(-used.vgpr * target.warp_size // 256) * 256
    by_registers = 4 * (target.registers // 4 // registers_of_warp) // warps
    by_shared = target.shared_per_sm // (-(-(used.shared_bytes + 1024) // 128) * 128)
    return warps * min(target.warps_per_sm // warps, target.blocks_per_sm, by_registers, by_shared)
