"""The launch of a compiled kernel on numpy arrays, as on a GPU."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gluonmap.cdna import text
from gluonmap.cdna.errors import BadLaunch, NotExecuted
from gluonmap.cdna.figures import Counters, CounterSummary, summarise
from gluonmap.cdna.findings import Finding, Findings, Place, grouped
from gluonmap.cdna.generate import Generated, generate
from gluonmap.cdna.lds import Lds
from gluonmap.cdna.machine import Machine, Trace
from gluonmap.cdna.memory import BASE, GlobalAccess, Memory
from gluonmap.cdna.operands import EXEC, OVERFLOW
from gluonmap.cdna.program import MachineProgram, build
from gluonmap.cdna.sanitizer import Sanitizer
from gluonmap.cdna.scratch import Scratch
from gluonmap.cdna.state import LANES, SCALARS, Waves
from gluonmap.cdna.text import Argument, Code
from gluonmap.cdna.waits import OperationTrack

Array = npt.NDArray[Any]
u8, u32, u64 = np.uint8, np.uint32, np.uint64

TARGETS = ("gfx942", "gfx950")
STEPS = 5_000_000
"""Default limit of the instructions of a launch. One instruction takes microseconds."""
_USER_SGPRS = (
    ("dispatch_ptr", 2),
    ("queue_ptr", 2),
    ("kernarg_segment_ptr", 2),
    ("dispatch_id", 2),
    ("private_segment_size", 1),
)
"""Scalar registers that the launch fills first, in this order, each only if its directive is set."""
_TOGETHER = 1 << 29
"""Most bytes of registers and LDS of the work-groups that run together."""
_PACKET = 64
"""Bytes of an AQL dispatch packet."""


@dataclass(frozen=True, slots=True)
class Unwritten:
    """An array that the kernel must write before it reads it. A read before that is a finding, and gets its content."""

    array: Any


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a launch. The arrays were written in place and are not part of it."""

    findings: tuple[Finding, ...]
    """Findings: accesses out of bounds always, all others only with `sanitize`."""
    executed: int
    """Number of instructions. One that several waves execute together counts once."""
    figures: CounterSummary | None
    """The counters, if `figures` was set."""
    idle_waits: tuple[tuple[int, str], ...] = ()
    """With `sanitize`: (pc, counter) of each s_waitcnt that had nothing to wait for in this run."""

    @property
    def by_line(self) -> tuple[Place, ...]:
        """The findings grouped for people: one entry for each kind and line of the kernel, in program order."""
        return grouped(self.findings)


class PreparedKernel:
    """A compiled kernel, read once and launched any number of times."""

    def __init__(self, code: Code, shared_bytes: int, names: tuple[str, ...] = ()) -> None:
        """`names` are those of the arguments, in order; empty if they are not known."""
        if code.target not in TARGETS:
            raise NotExecuted(f"a program for {code.target}")
        self.code, self.shared_bytes, self.names = code, shared_bytes, names
        self.program: MachineProgram = build(code)
        self._generated: dict[bool, Generated] = {}
        _check_modes(code)

    def generated(self, sanitize: bool) -> Generated:
        """Return the functions of the kernel's blocks."""
        if sanitize not in self._generated:
            self._generated[sanitize] = generate(self.program, sanitize)
        return self._generated[sanitize]

    @property
    def unknown(self) -> tuple[str, ...]:
        """Instructions that are not supported. A launch that reaches one raises NotExecuted."""
        self.generated(False)
        return tuple(self.program.unknown[pc] for pc in sorted(self.program.unknown))


def prepare(compiled: Any) -> PreparedKernel:
    """Return a kernel ready for launches.

    `compiled` is what Triton returned for it, or the amdgcn text of a kernel without dynamic LDS.
    """
    if isinstance(compiled, PreparedKernel):
        return compiled
    if isinstance(compiled, str):
        code = text.read(compiled)
        return PreparedKernel(code, code.descriptor.get("group_segment_fixed_size", 0))
    code = text.read(compiled.asm["amdgcn"])
    fixed = code.descriptor.get("group_segment_fixed_size", 0)
    signature = getattr(getattr(compiled, "src", None), "signature", {})
    names = tuple(str(name) for name, type_ in signature.items() if type_ != "constexpr")
    return PreparedKernel(code, max(int(compiled.metadata.shared), fixed), names)


def run(
    compiled: Any,
    grid: Sequence[int],
    arguments: Sequence[Any] | Mapping[str, Any],
    *,
    sanitize: bool = False,
    figures: bool = False,
    seed: int = 0,
    order: int | None = None,
    steps: int = STEPS,
    trace: Trace | None = None,
) -> Result:
    """Execute `compiled` on `grid`. Arrays among `arguments` are written in place.

    compiled: as in `prepare`.
    arguments: the kernel's run-time arguments in order, or by name. Arguments that were compiled in (constexpr, and
        integers that are 1) are left out; by name they are ignored. An array is a contiguous numpy array or a writable
        buffer: only its bytes count. bf16 is uint16, see `values`. A number fills the argument's size; a float of 4
        bytes is float32.
    seed: seed of the content of registers and LDS at the start.
    order: None runs all waves in step. A number runs them one after the other between barriers, in a random order with
        this seed. Neither seed nor order may change the result of a right kernel. If the grid is too large to run
        together, some work-groups run to their end before others begin.
    trace: called with each block and its waves before the block runs.

    Raises:
        NotExecuted: an instruction or detail is not known. The arrays are unchanged.
        BadLaunch: the arguments do not fit.
        StepLimit: more than `steps` instructions were executed.
    """
    kernel = prepare(compiled)
    launch = _Launch(kernel, _grid(grid), _in_order(kernel, arguments), sanitize, figures, seed)
    summary = launch.execute(order, steps, trace)
    idle = launch.sanitizer.idle_waits() if launch.sanitizer else ()
    return Result(launch.findings.all(), launch.machine.executed, summary, idle)


def _grid(grid: Sequence[int]) -> tuple[int, int, int]:
    whole = tuple(int(n) for n in grid) + (1,) * (3 - len(grid))
    if len(whole) != 3 or any(n < 1 for n in whole):
        raise BadLaunch(f"grid {tuple(grid)}: one to three numbers, each at least 1")
    return whole[0], whole[1], whole[2]


def _in_order(kernel: PreparedKernel, arguments: Sequence[Any] | Mapping[str, Any]) -> list[Any]:
    if not isinstance(arguments, Mapping):
        return list(arguments)
    if not kernel.names:
        raise BadLaunch("the names of the arguments are not known: give them in order")
    if missing := [name for name in kernel.names if name not in arguments]:
        raise BadLaunch(f"no argument {', '.join(missing)} (the kernel takes {', '.join(kernel.names)})")
    return [arguments[name] for name in kernel.names]


def _check_modes(code: Code) -> None:
    """Raise NotExecuted unless the kernel uses the modes that the arithmetic here implements."""
    expected = {
        "float_round_mode_32": 0,
        "float_round_mode_16_64": 0,
        "float_denorm_mode_32": 3,
        "float_denorm_mode_16_64": 3,
        "fp16_overflow": 0,
        "dx10_clamp": 1,
        "tg_split": 0,
        "uses_dynamic_stack": 0,
    }
    for name, value in expected.items():
        if code.descriptor.get(name, value) != value:
            raise NotExecuted(f".amdhsa_{name} {code.descriptor[name]}")


class _Launch:
    """The memories and registers of one launch."""

    def __init__(
        self,
        kernel: PreparedKernel,
        grid: tuple[int, int, int],
        arguments: list[Any],
        sanitize: bool,
        figures: bool,
        seed: int,
    ) -> None:
        code = kernel.code
        self.kernel, self.grid = kernel, grid
        self.groups = math.prod(grid)
        self.findings = Findings()
        self.rng = np.random.default_rng(seed)
        self.arrays: list[tuple[Array, int]] = []
        """(bytes of an argument, their address in the launch's memory)."""
        visible = [a for a in code.arguments if not a.kind.startswith("hidden_")]
        # Triton adds two pointers to scratch memory that the host would allocate.
        if len(arguments) not in (len(visible), max(len(visible) - 2, 0)):
            raise BadLaunch(f"{len(arguments)} arguments: {code.name} takes {len(visible)}, with two of scratch memory")
        arguments = arguments + [0] * (len(visible) - len(arguments))
        contents = [_bytes_of(a) for a in arguments]
        block = max(code.descriptor.get("kernarg_size", 0), 8)
        self.memory = Memory([c.nbytes for c in contents if c is not None] + [block, _PACKET])
        unwritten: list[int] = []
        values: list[Any] = []
        for number, (argument, content) in enumerate(zip(arguments, contents, strict=True)):
            if content is None:
                values.append(argument)
                continue
            name = kernel.names[number] if number < len(kernel.names) else f"argument {number}"
            address = self._allocate(name, content)
            values.append(address)
            if isinstance(argument, Unwritten):
                unwritten.append(address - BASE)
        packed = np.zeros(block, u8)
        self._pack(packed, visible, values)
        hidden = self._hidden(packed)
        self.arguments_at = self.memory.allocate("the argument block", packed)
        self.memory.unknown = [
            (self.arguments_at - BASE + a.offset, self.arguments_at - BASE + a.offset + a.size) for a in hidden
        ]
        self.packet_at = self.memory.allocate("the dispatch packet", self._packet())
        waves = code.waves
        lds_stride = max((kernel.shared_bytes + 15) & ~15, 16)
        each = lds_stride + waves * LANES * 4 * kernel.program.registers
        self.together = min(self.groups, max(1, _TOGETHER // each))
        """Number of work-groups that run together."""
        self.figures = Counters(kernel.program, waves) if figures else None
        self.sanitizer = (
            Sanitizer(kernel.program, self.memory, self.findings, lds_stride, waves, unwritten, self.together)
            if sanitize
            else None
        )
        lds = Lds(self.together, kernel.shared_bytes, waves, self.findings, self.rng, self.sanitizer, self.figures)
        access = GlobalAccess(self.memory, lds, self.findings, code.target == "gfx950", self.sanitizer, self.figures)
        private = code.descriptor.get("private_segment_fixed_size", 0)
        scratch = Scratch(self.groups * waves, private, self.findings, self.figures)
        self.bound = kernel.generated(sanitize).bind(memory=access, lds=lds, scratch=scratch, sanitizer=self.sanitizer)
        self.machine: Machine

    def execute(self, order: int | None, steps: int, trace: Trace | None) -> CounterSummary | None:
        """Run to the end, write the arrays back, and return the counters if they were requested."""
        blocks = {b.start: b for b in self.kernel.program.blocks}
        release = self.sanitizer.release if self.sanitizer else lambda groups: None
        self.machine = Machine(blocks, self.bound, steps, release, trace, self.kernel.code.waves)
        rng = np.random.default_rng(order)
        with np.errstate(all="ignore"):
            for first in range(0, self.groups, self.together):
                if self.sanitizer and first:
                    self.sanitizer.fresh()
                waves = self._waves(range(first, min(first + self.together, self.groups)))
                if order is None:
                    self.machine.run(waves)
                else:
                    self.machine.run_apart(waves, rng)
        for array, address in self.arrays:
            array[...] = self.memory.content(address)
        return summarise(self.figures, self.machine.visits, blocks) if self.figures else None

    def _allocate(self, name: str, content: Array) -> int:
        """Return the address of an argument's bytes. An array that comes twice has one buffer."""
        for array, address in self.arrays:
            if array.ctypes.data == content.ctypes.data and array.nbytes == content.nbytes:
                return address
        address = self.memory.allocate(name, content)
        self.arrays.append((content, address))
        return address

    def _pack(self, packed: Array, places: list[Argument], values: list[Any]) -> None:
        for place, value in zip(places, values, strict=True):
            raw = _number(value, place)
            packed[place.offset : place.offset + place.size] = np.frombuffer(raw, u8)

    def _hidden(self, packed: Array) -> list[Argument]:
        """Fill the hidden arguments that are known; return the others."""
        known: dict[str, int] = {"hidden_grid_dims": 3 if self.grid[2] > 1 else 2 if self.grid[1] > 1 else 1}
        for k, axis in enumerate("xyz"):
            known[f"hidden_block_count_{axis}"] = self.grid[k]
            known[f"hidden_group_size_{axis}"] = self.kernel.code.threads if k == 0 else 1
            known[f"hidden_remainder_{axis}"] = 0
            known[f"hidden_global_offset_{axis}"] = 0
        known["hidden_dynamic_lds_size"] = self.kernel.shared_bytes
        rest = []
        for argument in self.kernel.code.arguments:
            if not argument.kind.startswith("hidden_"):
                continue
            if argument.kind in known:
                raw = known[argument.kind].to_bytes(argument.size, "little")
                packed[argument.offset : argument.offset + argument.size] = np.frombuffer(raw, u8)
            else:
                rest.append(argument)
        return rest

    def _packet(self) -> Array:
        """Return the dispatch packet (HSA 1.2, kernel dispatch packet). Its sizes are in work-items."""
        packet = np.zeros(_PACKET, u8)
        threads = self.kernel.code.threads
        packet[4:10] = np.array([threads, 1, 1], np.uint16).view(u8)
        packet[12:24] = np.array([self.grid[0] * threads, self.grid[1], self.grid[2]], u32).view(u8)
        packet[28:32] = np.array([self.kernel.shared_bytes], u32).view(u8)
        packet[40:48] = np.array([self.arguments_at], u64).view(u8)
        return packet

    def _waves(self, groups: range) -> Waves:
        """Return the waves of some work-groups at their start. Registers that a launch does not set are random."""
        code, descriptor = self.kernel.code, self.kernel.code.descriptor
        ids = np.arange(groups.start * code.waves, groups.stop * code.waves)
        total = len(ids)
        vector = self._noise((self.kernel.program.registers, total, LANES))
        scalar = self._noise((total, SCALARS))
        filled = 0
        if descriptor.get("user_sgpr_private_segment_buffer") or descriptor.get("user_sgpr_flat_scratch_init"):
            raise NotExecuted("user SGPRs of a scratch descriptor")
        for name, count in _USER_SGPRS:
            if not descriptor.get(f"user_sgpr_{name}"):
                continue
            address = {"kernarg_segment_ptr": self.arguments_at, "dispatch_ptr": self.packet_at}.get(name)
            if address is not None:
                scalar[:, filled] = address & 0xFFFFFFFF
                scalar[:, filled + 1] = address >> 32
            filled += count
        preloaded = descriptor.get("user_sgpr_kernarg_preload_length", 0)
        if preloaded:
            start = descriptor.get("user_sgpr_kernarg_preload_offset", 0)
            words = self.memory.content(self.arguments_at).view(u32)[start : start + preloaded]
            scalar[:, filled : filled + len(words)] = words
        filled = descriptor.get("user_sgpr_count", filled + preloaded)
        group = ids // code.waves
        numbers = (group % self.grid[0], group // self.grid[0] % self.grid[1], group // (self.grid[0] * self.grid[1]))
        for axis, number in zip("xyz", numbers, strict=True):
            if descriptor.get(f"system_sgpr_workgroup_id_{axis}"):
                scalar[:, filled] = number
                filled += 1
        scalar[:, EXEC : EXEC + 2] = 0xFFFFFFFF
        scalar[:, OVERFLOW] = 0
        vector[0] = (ids % code.waves * LANES)[:, None] + np.arange(LANES)
        tracks = [OperationTrack(ids)] if self.sanitizer else []
        return Waves(vector, scalar, np.zeros((total, 1), bool), ids, tracks)

    def _noise(self, shape: tuple[int, ...]) -> Array:
        """Return random words. They repeat after 8191 words, since generating them is what takes time."""
        piece = self.rng.integers(0, 1 << 32, 8191, u32)
        return np.resize(piece, shape)


def _bytes_of(argument: Any) -> Array | None:
    """Return the bytes of an array or buffer without a copy; None for a number."""
    if isinstance(argument, Unwritten):
        argument = argument.array
    if isinstance(argument, int | float | np.integer | np.floating | np.bool_):
        return None
    if isinstance(argument, bytearray | memoryview):
        argument = np.frombuffer(argument, u8)
    if not isinstance(argument, np.ndarray):
        raise BadLaunch(f"an argument of type {type(argument).__name__}: neither a number nor a numpy array or buffer")
    if argument.flags.c_contiguous:
        return argument.reshape(-1).view(u8)
    if argument.flags.f_contiguous:
        return argument.T.reshape(-1).view(u8)
    raise BadLaunch(f"an array of shape {argument.shape} and strides {argument.strides} is not contiguous")


def _number(value: Any, place: Argument) -> bytes:
    """Return the bytes of a number in the argument block."""
    if isinstance(value, float | np.floating):
        kinds: dict[int, Any] = {2: np.float16, 4: np.float32, 8: np.float64}
        if place.kind != "by_value" or place.size not in kinds:
            raise BadLaunch(f"{value} for an argument of {place.size} bytes, kind {place.kind}")
        return bytes(np.array([value], kinds[place.size]).view(u8))
    return (int(value) & ((1 << 8 * place.size) - 1)).to_bytes(place.size, "little")
