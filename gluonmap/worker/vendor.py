"""Differences between makers of GPUs: context, synchronisation, error messages, clocks. One small class for each.

torch calls both "cuda". The class for NVIDIA was run on an H200. The class for AMD follows the documentation of HIP and
of the kernel driver, and was never run: UNVERIFIED.

Triton and torch are imported in the functions, for their weight: a compile needs no torch.
"""

from __future__ import annotations

import ctypes
import os
import resource
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gluonmap.model import exitcode, targets
from gluonmap.worker.tensors import Tensors


class Failure(NamedTuple):
    """Exit status and kind of an exception of a launch."""

    status: int
    kind: str


class NoDevice(Exception):
    """There is no usable device. The text is the reason."""


class Vendor:
    """A maker's devices through torch and Triton. No method touches a device before `open`."""

    visible = ""
    """Environment variable with the devices that a process sees."""
    triton_name = ""
    """Triton's name of the back end."""
    crashes: tuple[tuple[str, str], ...] = ()
    """Words in a device's error → kind of the crash. Such an error ends the context: nothing runs after it."""
    exhausted: tuple[str, ...] = ("out of resource", "too many resources requested", "out of memory")
    flush_bytes = 256 << 20
    """Bytes written before each measured launch: more than any cache holds."""

    def __init__(self) -> None:
        self.tensors = Tensors()
        self.index = 0
        self._flush: Any = None

    def count(self) -> int:
        """Return the number of devices; 0 also if torch is missing or made for another maker."""
        torch = _torch()
        return int(torch.cuda.device_count()) if torch is not None and self.is_torchs(torch) else 0

    def is_torchs(self, torch: Any) -> bool:
        """Return whether the installed torch is made for this vendor."""
        raise NotImplementedError

    @property
    def device(self) -> str:
        """torch's name of the open device."""
        return f"cuda:{self.index}"

    def lock_files(self) -> list[str]:
        """Return one lock file for each device that this process sees. The holder of the lock may use the device.

        All runs of this user share the files: two runs that measure on one device at once would disturb each other.
        """
        seen = (part.strip() for part in os.environ.get(self.visible, "").split(","))
        names = [name for name in seen if name] or [str(index) for index in range(self.count())]
        folder = f"/tmp/gluonmap-devices-{os.getuid()}"  # not TMPDIR: each candidate has its own
        return [os.path.join(folder, f"{self.triton_name}-{name}.lock".replace(os.sep, "_")) for name in names][
            : self.count()
        ]

    def open(self, index: int) -> None:
        """Create a context on a device and make Triton launch there.

        Raises:
            NoDevice: the device cannot be used.
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
        """Return the name of the open device's target."""
        from triton.runtime import driver

        return target_name(driver.active.get_current_target())

    def compiled(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> Any:
        """Compile a kernel for the exact arguments of a launch; return Triton's compiled kernel without a launch."""
        return jit.run(*positional, grid=grid, warmup=True, **keywords)

    def launch(self, jit: Any, positional: Sequence[Any], keywords: dict[str, Any], grid: tuple[int, ...]) -> None:
        jit.run(*positional, grid=grid, warmup=False, **keywords)

    def synchronize(self) -> None:
        """Wait for the device. Raise the error that occurred on it."""
        _torch().cuda.synchronize()

    def times_us(self, launch: Callable[[], None], count: int) -> list[float]:
        """Return the times of `count` launches in microseconds on the device's clock, each after a flush of its caches.

        The flush takes the device longer than the host needs to enqueue the next launch, so no host time is measured.
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
        """Return the present clock of the compute units in MHz; None if the driver does not report it."""
        return None

    def failure(self, error: BaseException, *, launched: bool) -> Failure:
        """Return the meaning of an exception. If the device had begun (`launched`), an unknown error is a crash."""
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
        """Return the clock of the multiprocessors in MHz, from NVML."""
        pci = _pci_address(_torch().cuda.get_device_properties(self.index))
        if not pci:
            return None
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
            handle, clock = ctypes.c_void_p(), ctypes.c_uint()
            errors = (
                nvml.nvmlInit_v2(),
                nvml.nvmlDeviceGetHandleByPciBusId_v2(pci.encode(), ctypes.byref(handle)),
                nvml.nvmlDeviceGetClockInfo(handle, 1, ctypes.byref(clock)),  # NVML_CLOCK_SM
            )
        except (OSError, AttributeError):
            return None
        return int(clock.value) if not any(errors) else None


class Amd(Vendor):
    """HIP devices. UNVERIFIED: never run. A bad address ends the process there (SIGABRT), which is CRASHED as well."""

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
    """Twice the last-level cache of MI300, which holds 256 MB."""

    def is_torchs(self, torch: Any) -> bool:
        return torch.version.hip is not None

    def clock_mhz(self) -> int | None:
        """Return the clock of the compute units in MHz: the line of the kernel driver's table that a star marks."""
        pci = _pci_address(_torch().cuda.get_device_properties(self.index)).lower()[4:]
        try:
            lines = Path(f"/sys/bus/pci/devices/{pci}/pp_dpm_sclk").read_text().splitlines()
        except OSError:
            return None
        now = [line.split(":")[1].strip(" *") for line in lines if line.rstrip().endswith("*") and ":" in line]
        number = now[0].lower().removesuffix("mhz") if now else ""
        return int(number) if number.isdigit() else None


VENDORS: dict[str, type[Vendor]] = {"cuda": Nvidia, "hip": Amd}
"""Classes by the name of Triton's back end."""


def target_name(gpu: Any) -> str:
    """Return the canonical name of a target, from Triton's `GPUTarget`."""
    return targets.name_of(gpu.backend, gpu.arch)


def find_device() -> tuple[str, str]:
    """Return target and name of this machine's GPU, as Triton and torch find it; "" if they find none."""
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
    """Return torch; None if it is not installed (an empty module may be its stand-in)."""
    try:
        import torch
    except ImportError:
        return None
    return torch if isinstance(getattr(torch, "__version__", None), str) else None


def _pci_address(properties: Any) -> str:
    """Return a PCI address such as "00000000:4E:00.0"; "" if this torch does not report it."""
    ids = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    numbers = [number for number in ids if isinstance(number, int)]
    return "{:08X}:{:02X}:{:02X}.0".format(*numbers) if len(numbers) == 3 else ""


def lift_memory_limit() -> None:
    """Lift this process's limit on address space as far as allowed: a context maps far more than it uses."""
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def use_cache(folder: str) -> None:
    """Make Triton's cache `folder` from now on."""
    os.environ["TRITON_CACHE_DIR"] = folder
