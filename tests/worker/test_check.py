"""The check of results: distances, guards, poison, error messages. On the CPU, with torch if it is installed."""

from __future__ import annotations

import time
from typing import Any

import pytest

from gluonmap.model import exitcode
from gluonmap.model.verdict import OutputError
from gluonmap.worker import check, timing, vendor
from gluonmap.worker.progress import Slot
from gluonmap.worker.tensors import GUARD_BYTES, HUGE, Distance, Mismatch, Tensors

# --- distances and guards, with torch ---------------------------------------------------------------------------------


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="torch is not installed here: only launches need it")


def distance(out: Any, reference: Any) -> Distance:
    return Tensors().distance(out, reference)


def test_equal_tensors_have_no_distance(torch: Any) -> None:
    x = torch.randn(100, 7)
    assert distance(x, x.double()) == Distance(0.0, 0.0, 0)


def test_the_relative_error_is_that_of_norms(torch: Any) -> None:
    reference = torch.tensor([3.0, 4.0])
    assert distance(reference + torch.tensor([0.0, 0.5]), reference).relative == pytest.approx(0.1)


def test_one_bad_column_hides_in_the_norm_and_shows_elementwise(torch: Any) -> None:
    reference = torch.ones(16, 4096)
    out = reference.clone()
    out[:, 5] = 1.05
    found = distance(out, reference)
    assert found.relative < 1e-3
    assert found.elementwise == pytest.approx(0.025, rel=1e-3)
    error = OutputError("y", found.relative, found.elementwise, 1e-3, check.ELEMENTWISE * 1e-3, "float32")
    assert check.complaint_of(error) == ("elementwise error", "y: an element is wrong by 0.025 > 0.01")


def test_infinities_and_nan_must_stand_in_the_same_places_and_count_in_no_error(torch: Any) -> None:
    nan, inf = float("nan"), float("inf")
    reference = torch.tensor([1.0, nan, inf, -inf, 2.0])
    assert distance(reference.clone(), reference) == Distance(0.0, 0.0, 0)
    assert distance(torch.tensor([1.0, nan, -inf, -inf, nan]), reference).misplaced == 2


def test_what_the_outputs_dtype_cannot_hold_is_expected_to_overflow(torch: Any) -> None:
    reference = torch.tensor([70_000.0, 1.0])
    assert distance(reference.to(torch.float16), reference) == Distance(0.0, 0.0, 0)


def test_large_numbers_do_not_overflow_the_norm(torch: Any) -> None:
    reference = torch.full((1000,), 1e30)
    assert distance(reference * 1.5, reference).relative == pytest.approx(0.5, rel=1e-5)


def test_anything_against_a_reference_of_zeros_is_as_wrong_as_can_be(torch: Any) -> None:
    assert distance(torch.tensor([1.0]), torch.tensor([0.0])) == Distance(HUGE, HUGE, 0)


def test_whole_numbers_must_be_equal(torch: Any) -> None:
    found = distance(torch.tensor([1, 2, 4]), torch.tensor([1, 2, 3]))
    assert found.relative > 0
    assert "int64" not in check.DEFAULT_TOLERANCES


def test_a_reference_of_another_shape_is_the_probes_mistake(torch: Any) -> None:
    with pytest.raises(Mismatch, match=r"has shape \(3,\) where the output has \(2,\)"):
        distance(torch.zeros(2), torch.zeros(3))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8", "int64", "float8_e5m2"])
def test_a_guarded_tensor_has_the_shape_strides_and_alignment_of_its_own(torch: Any, dtype: str) -> None:
    whole = torch.zeros(40, 24, dtype=getattr(torch, dtype))
    like = whole[3:33, 2:18]
    guarded = Tensors().guarded(like)
    found = guarded.tensor
    assert (found.shape, found.stride(), found.dtype) == (like.shape, like.stride(), like.dtype)
    assert found.data_ptr() % 256 == like.data_ptr() % 256
    Tensors().poison(found, 0xFF)
    assert guarded.intact()


@pytest.mark.parametrize("offset", [-1, -GUARD_BYTES // 4, 1000, 1000 + GUARD_BYTES // 4 - 1])
def test_a_write_outside_of_a_guarded_tensor_is_seen(torch: Any, offset: int) -> None:
    guarded = Tensors().guarded(torch.zeros(1000))
    guarded.tensor.as_strided((1,), (1,), guarded.tensor.storage_offset() + offset).fill_(7.0)
    assert not guarded.intact()


def test_a_write_into_the_gap_between_rows_is_seen(torch: Any) -> None:
    guarded = Tensors().guarded(torch.zeros(8, 16)[:, :12])
    guarded.tensor.as_strided((8, 13), (16, 1)).fill_(7.0)
    assert not guarded.intact()


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "float8_e4m3fn", "float8_e5m2"])
def test_the_first_poison_is_nan_in_every_float_type(torch: Any, dtype: str) -> None:
    tensor = torch.zeros(8, dtype=getattr(torch, dtype))
    Tensors().poison(tensor, check.POISONS[1])
    assert bool(torch.isnan(tensor.float()).all())


def test_bits_tell_zeros_of_two_signs_apart(torch: Any) -> None:
    tensors = Tensors()
    assert not tensors.same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))
    nan = torch.tensor([float("nan")])
    assert tensors.same_bits(nan, nan.clone())


# --- a check from its inputs to its end, with torch -------------------------------------------------------------------


def case(kernel: Any, reference: Any, seed: int = 0, **inputs: Any) -> check.Case:
    return check.Case("default", seed, inputs, reference, lambda outputs: kernel({**inputs, **outputs}))


def test_a_kernel_that_adds_to_its_output_finds_there_what_the_inputs_gave(torch: Any) -> None:
    checker = check.Checker(Tensors(), {})
    inputs = {"x": torch.ones(8), "y": torch.full((8,), 2.0)}
    checker.run(case(lambda i: i["y"].add_(i["x"]), lambda i: {"y": i["x"] + i["y"]}, **inputs))
    assert checker.found().runs == 2
    assert not checker.found().racy


def test_room_to_work_in_is_as_before_for_the_second_launch(torch: Any) -> None:
    def kernel(i: Any) -> None:
        i["room"].add_(1)
        i["y"].copy_(i["room"])

    checker = check.Checker(Tensors(), {})
    checker.run(case(kernel, lambda i: {"y": torch.ones(4)}, room=torch.zeros(4), y=torch.empty(4)))
    assert checker.found().errors[0].relative == 0.0


def test_what_is_left_unwritten_is_found_by_one_poison_or_the_other_and_is_no_race(torch: Any) -> None:
    def unwritten(seed: int) -> check.Case:
        reference = torch.full((4,), -1)
        return case(lambda i: i["y"][1:].fill_(-1), lambda i: {"y": reference}, seed, y=torch.zeros(4).long())

    checker = check.Checker(Tensors(), {})
    checker.run(unwritten(seed=1))  # eight bytes 0xFF are -1
    with pytest.raises(check.Wrong):
        checker.run(unwritten(seed=0))
    assert not checker.racy


def test_two_launches_that_differ_are_racy_also_where_they_are_wrong(torch: Any) -> None:
    numbers = iter(range(9))
    checker = check.Checker(Tensors(), {})
    with pytest.raises(check.Wrong, match="relative error"):
        checker.run(case(lambda i: i["y"].fill_(next(numbers)), lambda i: {"y": torch.ones(4)}, y=torch.empty(4)))
    assert checker.racy


def test_tolerances_that_nobody_declared_are_said_to_be_defaults(torch: Any) -> None:
    checker = check.Checker(Tensors(), {})
    checker.run(case(lambda i: i["y"].fill_(1), lambda i: {"y": torch.ones(4)}, y=torch.empty(4, dtype=torch.float16)))
    (error,) = checker.found().errors
    assert (error.tolerance, error.declared, error.dtype) == (2e-3, False, "float16")


# --- words of errors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "launched", "status", "kind"),
    [
        (
            "CUDA error: an illegal memory access was encountered",
            True,
            exitcode.CRASHED_DEVICE,
            "illegal memory access",
        ),
        ("Triton Error [CUDA]: misaligned address", False, exitcode.CRASHED_DEVICE, "misaligned address"),
        ("CUDA error: an illegal instruction was encountered", True, exitcode.CRASHED_DEVICE, "illegal instruction"),
        ("CUDA error: something new", True, exitcode.CRASHED_DEVICE, "device error"),
        ("Triton Error [CUDA]: invalid argument", False, exitcode.REJECTED_LAUNCH, "RuntimeError"),
        ("out of resource: shared memory, Required: 9", False, exitcode.NO_RESOURCES, "budget"),
        ("CUDA out of memory. Tried to allocate", False, exitcode.NO_RESOURCES, "device memory"),
    ],
)
def test_each_error_of_a_launch_has_its_exit_status(text: str, launched: bool, status: int, kind: str) -> None:
    assert vendor.Nvidia().failure(RuntimeError(text), launched=launched) == (status, kind)


def test_a_target_bears_its_own_name_whatever_triton_adds_to_it() -> None:
    class Gpu:
        backend, arch = "hip", "gfx942:sramecc+:xnack-"

    assert vendor.target_name(Gpu) == "gfx942"


# --- time -------------------------------------------------------------------------------------------------------------


class Launches:
    """Times of launches like those of a device: the first is slow, the others repeat a list."""

    def __init__(self, times: list[float]) -> None:
        self.times, self.asked = times, []

    def __call__(self, count: int) -> list[float]:
        self.asked: list[int] = [*self.asked, count]
        return [(self.times * count)[i] for i in range(count)]


def test_median_and_middle_three_fifths_are_reported_and_warm_up_does_not_count() -> None:
    launches = Launches([900.0, 1000.0, 1000.0, 1000.0, 1100.0])
    found = timing.measure(launches, lambda: None)
    assert launches.asked == [5, 25, 100]
    assert (found.median_us, found.low_us, found.high_us, found.repeats) == (1000.0, 1000.0, 1000.0, 100)
    assert (found.clock_before_mhz, found.spread) == (None, 0.0)


def test_long_launches_are_measured_a_few_times_and_short_ones_not_without_end() -> None:
    long, short = Launches([1e6]), Launches([1.0])
    assert timing.measure(long, lambda: 1).repeats == timing.FEWEST
    assert timing.measure(short, lambda: 1).repeats == timing.MOST


# --- deadlines --------------------------------------------------------------------------------------------------------


def test_the_wait_for_a_device_stops_the_clock_and_the_device_starts_another() -> None:
    slot, began = Slot(), time.monotonic()
    assert slot.deadline(began, 120.0, 60.0) == began + 120.0
    slot.wait_for_device()
    assert slot.deadline(began, 120.0, 60.0) is None
    assert not slot.read().on_device
    slot.begin_on_device()
    deadline = slot.deadline(began, 120.0, 60.0)
    assert deadline is not None
    assert deadline == pytest.approx(time.monotonic() + 60.0, abs=5)
    assert slot.read().on_device
