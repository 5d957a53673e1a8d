"""What differs between makers of GPUs: context, synchronising, words of errors, clocks. One small class for each.

torch calls both by the name "cuda". NVIDIA's was run on an H200; AMD's is written to the documentation of HIP and of
the kernel driver, and was never run: UNVERIFIED.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gluonmap.model import exitcode, targets
from gluonmap.worker.tensors import Tensors


class Failure(NamedTuple):
    """What an exception of a launch means."""

    status: int
    kind: str


class NoDevice(Exception):
    """There is nothing to launch on; the text says why."""


class Vendor:
    """A maker's devices through torch and Triton. Nothing here touches a device before `open`."""

    visible = ""
    """Environment variable that names the devices which a process sees."""
    triton_name = ""
    """Of the back end, as Triton calls it."""
    crashes: tuple[tuple[str, str], ...] = ()
    """Words in an error of the device's own → what they mean. Such an error ends the context: nothing runs after it."""
    exhausted: tuple[str, ...] = ("out of resource", "too many resources requested", "out of memory")
    flush_bytes = 256 << 20
    """Written before each measured launch: more than any cache holds."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.index = 0
        self._flush: Any = None

    def count(self) -> int:
        """How many devices there are; 0 also where torch is missing or made for another maker."""
        torch = _torch()
        return int(torch.cuda.device_count()) if torch is not None and self.is_torchs(torch) else 0

    def is_torchs(self, torch: Any) -> bool:
        """True where the installed torch is made for this vendor."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """As torch names it."""
        return f"cuda:{self.index}"

    def lock_files(self) -> list[str]:
        """For each device that this process sees, the file whose lock is the right to use it.

        All runs of this user share them: two that measure on one device at once would measure each other.
        """
        seen = (part.strip() for part in os.environ.get(self.visible, "").split(","))
        names = [name for name in seen if name] or [str(index) for index in range(self.count())]
        folder = f"/tmp/gluonmap-devices-{os.getuid()}"  # TMPDIR is another one in each candidate
        return [os.path.join(folder, f"{self.triton_name}-{name}.lock".replace(os.sep, "_")) for name in names][
            : self.count()
        ]

    def open(self, index: int) -> None:
        """Make a context on a device, and Triton launch there.

        Raises:
            NoDevice: it cannot be used.
        """
        torch = _torch()
        self.index = index
        try:
            torch.cuda.set_device(index)
            torch.cuda.synchronize()
            from triton.backends import backends
            from triton.runtime import driver

            driver.set_active(backends[self.triton_name].driver())
        except Exception as error:
            raise NoDevice(f"the device cannot be used: {type(error).__name__}: {error}") from error
        import triton

        def scratch(size: int, alignment: int, stream: int | None) -> Any:
            return torch.empty(size, dtype=torch.int8, device=self.device)

        triton.set_allocator(scratch)

    def target(self) -> str:
        """Name of the target that the open device is."""
        from triton.runtime import driver

        return target_name(driver.active.get_current_target())

    def compiled(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> Any:
        """Triton's compiled kernel for the very arguments of a launch, not launched."""
        return jit.run(*positional, grid=grid, warmup=True, **keywords)

    def launch(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> None:
        jit.run(*positional, grid=grid, warmup=False, **keywords)

    def synchronize(self) -> None:
        """Wait for the device. Raises what went wrong on it."""
        _torch().cuda.synchronize()

    def times_us(self, launch: Callable[[], None], count: int) -> list[float]:
        """Microseconds of so many launches on the device's own clock, each after a flush of its caches.

        The flush takes the device longer than the host needs to hand in the launch behind it, so no time of the host's
        is measured.
        """
        torch = _torch()
        if self._flush is None:
            self._flush = torch.empty(self.flush_bytes // 4, dtype=torch.int32, device=self.device)
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        for begin, end in marks:
            self._flush.zero_()
            begin.record()
            launch()
            end.record()
        self.synchronize()
        return [begin.elapsed_time(end) * 1000.0 for begin, end in marks]

    def clock_mhz(self) -> int | None:
        """Clock of the compute units now; None where the driver does not say."""
        return None

    def failure(self, error: BaseException, *, launched: bool) -> Failure:
        """What an exception means. `launched`: the device had begun, so what nobody knows is a crash there."""
        text = str(error).lower()
        for words, kind in self.crashes:
            if words in text:
                return Failure(exitcode.CRASHED_DEVICE, kind)
        if type(error).__name__ == "OutOfResources" or any(words in text for words in self.exhausted):
            return Failure(exitcode.NO_RESOURCES, "device memory" if "out of memory" in text else "budget")
        if launched:
            return Failure(exitcode.CRASHED_DEVICE, "device error")
        return Failure(exitcode.REJECTED_LAUNCH, type(error).__name__)


class Nvidia(Vendor):
    """CUDA devices."""

    visible = "CUDA_VISIBLE_DEVICES"
    triton_name = "nvidia"
    crashes = (
        ("illegal memory access", "illegal memory access"),
        ("misaligned address", "misaligned address"),
        ("illegal instruction", "illegal instruction"),
        ("invalid program counter", "invalid program counter"),
        ("hardware stack error", "hardware stack error"),
        ("address space", "wrong address space"),
        ("device-side assert", "device assertion"),
        ("unspecified launch failure", "launch failure"),
    )

    def is_torchs(self, torch: Any) -> bool:
        return torch.version.cuda is not None

    def clock_mhz(self) -> int | None:
        """Clock of the multiprocessors, as NVML tells it."""
        pci = _pci_address(_torch().cuda.get_device_properties(self.index))
        if not pci:
            return None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            handle, clock = ctypes.c_void_p(), ctypes.c_uint()
            asked = (
                nvml.nvmlInit_v2(),
                nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.encode(), ctypes.byref(handle)),
                nvml.nvmlDeviceGetClockInfo(handle, 1, ctypes.byref(clock)),  # NVML_CLOCK_SM
            )
        except (OSError, AttributeError):
            return None
        return int(clock.value) if not any(asked) else None


class Amd(Vendor):
    """HIP devices. UNVERIFIED: never run. A bad address there ends the process (SIGABRT), which is CRASHED as well."""

    visible = "HIP_VISIBLE_DEVICES"
    triton_name = "amd"
    crashes = (
        ("illegal memory access", "illegal memory access"),
        ("hiperrorillegaladdress", "illegal memory access"),
        ("illegal instruction", "illegal instruction"),
        ("unspecified launch failure", "launch failure"),
        ("hiperrorlaunchfailure", "launch failure"),
        ("device-side assert", "device assertion"),
    )
    flush_bytes = 512 << 20
    """MI300's last cache holds 256 MB."""

    def is_torchs(self, torch: Any) -> bool:
        return torch.version.hip is not None

    def clock_mhz(self) -> int | None:
        """Clock of the compute units, from the kernel driver's table: the line that a star marks."""
        pci = _pci_address(_torch().cuda.get_device_properties(self.index)).lower()[4:]
        try:
            lines = Path(f"/sys/bus/pci/devices/{pci}/pp_dpm_sclk").read_text().splitlines()
        except OSError:
            return None
        now = [line.split(":")[1].strip(" *") for line in lines if line.rstrip().endswith("*") and ":" in line]
        number = now[0].lower().removesuffix("mhz") if now else ""
        return int(number) if number.isdigit() else None


VENDORS: dict[str, type[Vendor]] = {"cuda": Nvidia, "hip": Amd}
"""By the name of Triton's back end."""


def target_name(gpu: Any) -> str:
    """Return the canonical name of a target, from Triton's `GPUTarget`."""
    return targets.name_of(gpu.backend, gpu.arch)


def find_device() -> tuple[str, str]:
    """Target and name of this machine's GPU, as Triton and torch find it; empty where they find none."""
    import traceback

    from triton.backends import backends

    for backend in backends.values():
        try:
            if backend.driver.is_active():
                target = target_name(backend.driver().get_current_target())
                return target, str(_torch().cuda.get_device_name())
        except Exception:
            traceback.print_exc()
    return "", ""


def _torch() -> Any:
    """torch, or None where it is not installed (an empty module may stand in for it)."""
    try:
        import torch
    except ImportError:
        return None
    return torch if isinstance(getattr(torch, "__version__", None), str) else None


def _pci_address(properties: Any) -> str:
    """ "00000000:4E:00.0"; empty where this torch does not tell."""
    told = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    numbers = [number for number in told if isinstance(number, int)]
    return "{:08X}:{:02X}:{:02X}.0".format(*numbers) if len(numbers) == 3 else ""


def lift_memory_limit() -> None:
    """Take this process's bound on address space away, as far as it may: a context maps far more than it uses."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def use_cache(folder: str) -> None:
    """Make Triton keep what it compiles in `folder` from now on, and find there what it has compiled."""
    os.environ["TRITON_CACHE_DIR"] = folder
