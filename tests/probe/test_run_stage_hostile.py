"""A run on the CPU that is to be deceived: references, inputs and names that could make a wrong kernel pass, or a right
one fail."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cdna.assembly import text
from project import Project

from gluonmap import cdna
from gluonmap.model.candidate import Call, Candidate, Stage, Trial, Value
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Fault, Program, SanitizerFinding, Verdict
from gluonmap.runner import diagnostics, environment
from gluonmap.runner.processes import Ending
from gluonmap.spec import small_problems
from gluonmap.worker import check, execute
from gluonmap.worker.protocol import Bench, Evidence, Progress
from gluonmap.worker.tensors import HUGE, Mismatch, Tensors

torch: Any = pytest.importorskip("torch")
NAN = float("nan")


def run(kernel: Any, reference: Any, seed: int = 0, launches: int = 2, **inputs: Any) -> check.Checker:
    """One case, checked; `kernel(arguments)` stands for a launch."""
    checker = check.Checker(Tensors(), {})
    case = check.Case("default", seed, inputs, reference, lambda outputs: kernel({**inputs, **outputs}))
    checker.run(case, launches)
    return checker


def wrong(kernel: Any, reference: Any, **inputs: Any) -> str:
    """The kind of what is wrong with it."""
    with pytest.raises(check.Wrong) as caught:
        run(kernel, reference, **inputs)
    return caught.value.kind


def mismatch_text(kernel: Any, reference: Any, **inputs: Any) -> str:
    """Return the text of the mismatch that a run ends with."""
    with pytest.raises(Mismatch) as caught:
        run(kernel, reference, **inputs)
    return str(caught.value)


def nothing(given: Any) -> None:
    """A kernel that does nothing at all."""


# --- references -------------------------------------------------------------------------------------------------------


def doubles_in_place(given: Any) -> Any:
    return {"y": given["y"].mul_(2)}


def test_a_reference_that_computes_in_place_makes_a_kernel_that_does_nothing_no_right_one() -> None:
    assert wrong(nothing, doubles_in_place, y=torch.ones(8)) == "relative error"


def test_a_kernel_finds_its_inputs_as_they_were_whatever_the_reference_did_to_them() -> None:
    y = torch.ones(8)
    assert run(lambda given: given["y"].mul_(2), doubles_in_place, y=y).runs == 2
    assert y.tolist() == [1.0] * 8

    def sorts(given: Any) -> Any:
        given["x"][...] = given["x"].sort().values
        return {"y": given["x"]}

    x = torch.tensor([3.0, 1.0, 2.0])
    assert run(lambda given: given["y"].copy_(given["x"].sort().values), sorts, x=x, y=torch.empty(3)).runs == 2
    assert x.tolist() == [3.0, 1.0, 2.0]


def test_a_reference_that_is_an_input_is_not_what_the_kernel_makes_of_that() -> None:
    def spoils_both(given: Any) -> None:
        given["x"].zero_()
        given["y"].zero_()

    assert wrong(spoils_both, lambda given: {"y": given["x"]}, x=torch.ones(8), y=torch.empty(8)) == "relative error"


def test_where_no_output_has_a_finite_number_nothing_was_compared() -> None:
    def any_nan(given: Any) -> None:
        given["y"].fill_(NAN)

    said = "there is nothing to compare: no output has a finite number (default shape, seed 0)"
    assert mismatch_text(any_nan, lambda given: {"y": torch.full((4,), NAN)}, y=torch.empty(4)) == said
    assert mismatch_text(nothing, lambda given: {"y": torch.empty(0)}, y=torch.empty(0)) == said
    # Numbers where there should be none are wrong all the same.
    assert wrong(lambda given: given["y"].zero_(), lambda given: {"y": torch.full((4,), NAN)}, y=torch.empty(4))


@pytest.mark.parametrize("value", [None, [1.0], 1.0])
def test_a_reference_that_is_no_tensor_is_the_probes_mistake(value: Any) -> None:
    said = mismatch_text(nothing, lambda given: {"y": value}, y=torch.empty(1))
    assert said == f"the reference of y is no tensor but {type(value).__name__}"


@pytest.mark.parametrize(
    ("dtype", "number"), [("int32", 2**29), ("int64", 2**60), ("uint8", 200), ("int64", -(2**60)), ("bool", 0)]
)
def test_whole_numbers_are_wrong_by_one_whatever_their_size(dtype: str, number: int) -> None:
    right = torch.full((4,), number, dtype=getattr(torch, dtype))
    off = right.clone()
    off[2] = number + 1
    assert Tensors().distance(right, right.clone())[:2] == (0.0, 0.0)
    assert Tensors().distance(off, right).elementwise > 0
    assert wrong(lambda given: given["y"].copy_(off), lambda given: {"y": right}, y=torch.empty_like(right))


def test_complex_numbers_have_two_parts() -> None:
    right = torch.tensor([1 + 1j, 2 + 0j])
    assert Tensors().distance(right, right.clone())[:2] == (0.0, 0.0)
    assert Tensors().distance(torch.tensor([1 + 3j, 2 + 0j]), right).relative == pytest.approx(2 / 6**0.5)
    with pytest.raises(Mismatch, match="is complex where the output is not"):
        Tensors().distance(torch.ones(2), right)


def test_every_seed_of_a_thorough_run_has_its_poison() -> None:
    assert sorted(check.THOROUGH) == sorted(check.POISONS)
    for seed in check.THOROUGH:
        assert wrong(nothing, lambda given: {"y": torch.ones(4)}, seed=seed, y=torch.ones(4))


# --- names of one memory ----------------------------------------------------------------------------------------------


def shifts(given: Any) -> None:
    """Right where x and y are two tensors; in place each element is the last one by the end."""
    for i in range(7):
        given["y"][6 - i] = given["x"][7 - i]


def shifted(given: Any) -> Any:
    return {"y": torch.cat([given["x"][1:], given["x"][-1:]])}


def test_a_tensor_of_two_names_stays_one_for_the_launch() -> None:
    def last(given: Any) -> None:
        shifts(given)
        given["y"][7] = given["x"][7]

    x = torch.arange(8.0)
    assert run(last, shifted, x=x, y=torch.empty(8)).runs == 2
    assert wrong(last, shifted, x=x, y=x) == "relative error"
    assert wrong(last, shifted, x=x.view(2, 4).view(8), y=x) == "relative error"
    assert x.tolist() == list(range(8))


def test_a_view_of_other_strides_or_another_type_is_of_the_same_memory_too() -> None:
    x = torch.arange(16.0).reshape(4, 4)

    def transposes(given: Any) -> None:
        given["turned"].copy_(given["x"].t().clone() if given["x"].data_ptr() == x.data_ptr() else given["x"] * 2)

    # The kernel sees the output under both names: were `turned` another memory, it would find x itself.
    assert run(transposes, lambda given: {"turned": given["x"] * 2}, x=x, turned=x.t().t()).runs == 2
    bits = x.view(torch.int32)
    assert run(lambda given: given["bits"].zero_(), lambda given: {"x": x * 0}, x=x, bits=bits).runs == 2


def test_outputs_that_lie_between_each_other_are_apart_and_those_in_common_are_no_evidence() -> None:
    both = torch.zeros(4, 16)
    left, right = both[:, :8], both[:, 8:]

    def ones(given: Any) -> None:
        given["left"].fill_(1)
        given["right"].fill_(2)

    def reference(given: Any) -> Any:
        return {"left": torch.ones(4, 8), "right": torch.full((4, 8), 2.0)}

    assert run(ones, reference, left=left, right=right).runs == 2
    said = mismatch_text(ones, reference, left=both[:, :8], right=both[:, 4:12])
    assert said == "left and right have a part of their memory in common"


def test_expanded_tensors_can_be_inputs_and_outputs() -> None:
    one = torch.ones(1).expand(8)
    doubled = run(lambda given: given["y"].copy_(given["x"] * 2), lambda given: {"y": one * 2}, x=one, y=torch.empty(8))
    assert doubled.runs == 2

    def stores(given: Any) -> None:
        given["y"][0] = 3.0
        given["x"][0] = 5.0  # room to work in

    assert run(stores, lambda given: {"y": one * 3}, x=one, y=torch.ones(1).expand(8)).runs == 2
    assert wrong(nothing, lambda given: {"y": one * 3}, y=torch.ones(1).expand(8))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "bfloat16", "float8_e4m3fnuz", "complex64", "float64"])
def test_outputs_of_every_type_have_guards_that_nobody_touched(dtype: str) -> None:
    y = torch.ones(300).to(getattr(torch, dtype))
    assert run(lambda given: given["y"].copy_(y), lambda given: {"y": y}, y=torch.empty_like(y)).runs == 2


def test_errors_without_bound_are_written_as_a_number() -> None:
    assert Tensors().distance(torch.tensor([NAN, 1.0]), torch.tensor([NAN, 0.0])).relative == HUGE


def test_the_baseline_is_run_on_tensors_of_the_same_strides_and_memory() -> None:
    x = torch.arange(32.0).reshape(4, 8)[:, :5]
    inputs = {"x": x, "again": x.t(), "y": torch.zeros(3), "n": 7}
    seen = {}

    def launch(compiled: Any, call: Any, given: Any, *rest: Any) -> Any:
        seen.update(given)
        given["x"][0, 0] = 100.0
        return cdna.Result((), 1, None)

    made = object.__new__(execute.Execute)
    made.vendor = execute.Processor()
    made.trial = Trial({})
    made._compile = lambda *_: None  # type: ignore[method-assign]
    made._execute = launch  # type: ignore[method-assign]
    left = made._baseline(Candidate("gfx942", {}, {}), inputs)
    assert seen["x"].stride() == (8, 1)
    assert seen["n"] == 7
    assert left["again"][0, 0] == 100.0
    assert torch.equal(left["x"].reshape(-1)[1:], x.reshape(-1)[1:])
    assert x[0, 0] == 0.0


# --- answers that several candidates share ----------------------------------------------------------------------------


def stored(tmp_path: Path, inputs: dict[str, Any], **call: Any) -> str:
    """Name of the answer of one program on these inputs."""
    args = {"x": "*fp32", "n": 16}
    small = Call({"n": 16}, call.get("args", args), {}, call.get("grid", (1,)))
    made = object.__new__(execute.Execute)
    made.vendor = execute.Processor()
    made.bench = Bench("", str(tmp_path))
    made.trial = Trial({"n": 16}, small={"default": small})
    made.watch = made.trial.watch
    made._programs = {"default": "0123"}
    path = made._stored([check.Case("default", 1, inputs, lambda given: given, nothing)])
    return path.name if path else ""


def test_answers_are_shared_only_by_what_is_alike(tmp_path: Path) -> None:
    x = torch.arange(4, dtype=torch.int32)
    names = [
        stored(tmp_path, {"x": x, "y": x.clone()}),
        stored(tmp_path, {"x": x, "y": x}),  # one memory
        stored(tmp_path, {"x": x, "y": x.clone()}, grid=(2,)),
        stored(tmp_path, {"x": x, "y": x.clone()}, args={"x": "*fp32", "n": 32}),  # a number that inputs() leaves out
        stored(tmp_path, {"x": x.view(torch.float32), "y": x.clone()}),
        stored(tmp_path, {"x": x.view(2, 2), "y": x.clone()}),
        stored(tmp_path, {"x": x, "y": x.clone(), "scale": 1}),
        stored(tmp_path, {"x": x, "y": x.clone(), "scale": 1.0}),
    ]
    assert len(set(names)) == len(names)
    assert names[0] == stored(tmp_path, {"x": x.clone(), "y": x.clone()})


def test_what_a_text_does_not_tell_is_never_shared(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    assert stored(tmp_path, {"x": torch.zeros(4), "more": [1, (2.0, None, "a")]})
    for hidden in (numpy.arange(5000), [torch.zeros(2)], {"a": 1}, object()):
        assert stored(tmp_path, {"x": torch.zeros(4), "more": hidden}) == ""


@pytest.mark.parametrize(
    ("line", "atomic"),
    [
        ("\tglobal_atomic_add_f32 v0, v1, s[0:1]", True),
        ("\tbuffer_atomic_pk_add_bf16 v0, v1, s[0:3], 0 offen", True),
        ("atomic_free:", False),
        ('\t.file\t1 "/home/me/no_atomics" "global_atomic_add.py"', False),
        ("\ts_endpgm ; atomic", False),
    ],
)
def test_only_an_instruction_makes_a_program_one_with_atomics(line: str, atomic: bool) -> None:
    assert bool(execute._ATOMIC.search(f"kernel:\n{line}\n\ts_endpgm\n")) is atomic


def test_a_sum_in_an_output_that_the_reference_does_not_read_gets_advice() -> None:
    def said(instruction: str) -> str:
        return str(execute.Unsafe([SanitizerFinding("global memory read before it was written", instruction, 0)]))

    assert said("global_atomic_add_f32 v0, v1, s[0:1]").endswith("gave only if reference() reads it too")
    assert said("global_load_dword v0, v1, s[0:1]") == "global_load_dword v0, v1, s[0:1] (wave 0)"


# --- what the candidate's process does to itself ----------------------------------------------------------------------

COMPILED = Evidence(0, program=Program("0" * 16, "", "", ""))


def ended(status: int, phase: str, *, hung: bool = False, stage: Stage = Stage.RUN) -> Any:
    ending = Ending(status, hung, 1.0, Progress(phase), None, "", "", compiled=COMPILED)
    return diagnostics.answer_from(ending, (), 9.0, stage)


@pytest.mark.parametrize("phase", ["inputs", "run"])
def test_a_crash_of_this_machines_own_code_says_nothing_of_the_kernel(phase: str) -> None:
    assert isinstance(ended(-signal.SIGSEGV, phase), Fault)
    # Compiling for the ragged sizes, and on a device, it is the kernel's.
    assert ended(-signal.SIGSEGV, "front end").outcome is Outcome.CRASHED
    assert ended(-signal.SIGSEGV, phase.replace("run", "launch"), stage=Stage.CHECK).outcome is Outcome.CRASHED


def test_inputs_that_never_come_are_no_evidence() -> None:
    answer = ended(-signal.SIGKILL, "inputs", hung=True)
    assert isinstance(answer, Verdict)
    assert (answer.outcome, answer.reason.kind) == (Outcome.SKIPPED, "deadline")
    assert answer.reason.text == "inputs() of the probe file: no end within 9 s"
    assert ended(-signal.SIGKILL, "run", hung=True).outcome is Outcome.HUNG


# --- sizes, regimes and what the journal keeps ------------------------------------------------------------------------

PROBE = """
KERNEL = "executed"
KNOBS = {"HOW": ["right"]}
BASELINE = {"HOW": "right", "TILE": 64, "num_warps": 1}
ARGS = {"x_ptr": "*fp32", "y_ptr": "*fp32"}
SHAPES = {"large": {"n": 4096}, "run": {"n": "TILE // 64"}, "default": {"n": 32}}
GRID = "(cdiv(n, TILE),)"


def inputs(shape, config, device, seed):
    import torch

    x = torch.randn(shape["n"], generator=torch.Generator().manual_seed(seed))
    return {"x_ptr": x, "y_ptr": torch.empty_like(x), "n": shape["n"]}


def reference(inputs, shape):
    return {"y_ptr": inputs["x_ptr"] * 2}
"""


@pytest.fixture(scope="module")
def executed(shared_project: Project) -> Project:
    shared_project.kernel("executed")
    shared_project.write("probes/executed.py", PROBE)
    return shared_project


RUN = ("run", "kernels/executed.py", "-t", "gfx942", "--json")


def test_sizes_that_make_another_program_say_so_and_a_thorough_run_has_its_seeds(executed: Project) -> None:
    # A 1 is compiled in.
    document = json.loads(executed.run(*RUN, "--thorough").stdout)
    assert (document["outcome"], document["check"]["runs"]) == ("PASS", 6)
    assert document["check"]["sizes"] == ["n=1 (another program than at the launch's own sizes)"]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--shape", "q=5"), "no knob 'q'"),
        (
            ("--regime", "run"),
            "the regime 'run' holds the sizes of --stage run, and none that a program is compiled for",
        ),
    ],
)
def test_sizes_that_nothing_has_and_a_regime_of_expressions_are_refused(
    executed: Project, flags: tuple[str, ...], said: str
) -> None:
    done = executed.run(*RUN, *flags)
    assert (done.code, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


def persistent(shape: dict[str, Value]) -> Call:
    sizes = {name: int(str(value)) for name, value in shape.items()}
    return Call(shape, dict(shape), {}, (min(64, -(-sizes["M"] // 64) * -(-sizes["N"] // 64)),))


@pytest.mark.parametrize(
    ("shape", "small", "most"),
    [
        ({"M": 4096, "N": 4096}, {"M": 128, "N": 128}, 64),
        ({"M": 4096, "N": 4096}, {"M": 2048, "N": 1024}, 0),  # a small size that fills the grid shows what is carried
        ({"M": 64, "N": 1024}, {"M": 64, "N": 128}, 0),  # nor is the grid full at the sizes of the launch
    ],
)
def test_that_small_sizes_leave_each_work_group_one_tile_is_known(
    shape: dict[str, Value], small: dict[str, Value], most: int
) -> None:
    assert small_problems.work_group_cap(persistent, shape, small) == most
    assert small_problems.work_group_cap(lambda at: Call(at, {}, {}, (64,)), shape, small) == 0


def test_a_persistent_kernel_of_which_one_round_was_seen_has_a_note(executed: Project) -> None:
    done = executed.run(*RUN[:-1], "--grid", "(min(4, cdiv(n, TILE)),)", "--shape", "n=128")
    assert "no work-group has a second tile (the grid has 4 at most)" in " ".join(done.stderr.split())


def test_answers_of_another_model_are_other_answers(tmp_path: Path) -> None:
    (tmp_path / "cdna" / "opcodes").mkdir(parents=True)
    (tmp_path / "worker").mkdir()
    for name in (
        "cdna/a.py",
        "cdna/opcodes/b.py",
        *(f"worker/{n}.py" for n in ("execute", "launch", "check", "tensors")),
    ):
        (tmp_path / name).write_text("")
    found = {environment.model_identity(tmp_path)}
    for name in ("cdna/a.py", "cdna/opcodes/b.py", "worker/check.py"):
        (tmp_path / name).write_text("changed = True")
        found.add(environment.model_identity(tmp_path))
    assert len(found) == 4
    assert len(environment.model_identity()) == 20


# --- work-groups that wait for each other -----------------------------------------------------------------------------

WAITS = """
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32_e32 v4, 0
v_lshlrev_b32_e32 v5, 2, v0
v_xor_b32_e32 v7, 0x100, v5
s_waitcnt lgkmcnt(0)
s_cmp_lg_u32 s2, {waiting}
s_cbranch_scc1 .LBB0_2
.LBB0_1:
global_load_dword v2, v4, s[4:5]
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s9, v2
s_cmp_eq_u32 s9, 0
s_cbranch_scc1 .LBB0_1
s_branch .LBB0_3
.LBB0_2:
ds_write_b32 v5, v0
s_waitcnt lgkmcnt(0)
{barrier}
ds_read_b32 v6, v7
s_waitcnt lgkmcnt(0)
v_mov_b32_e32 v3, 1
global_store_dword v4, v3, s[4:5]
.LBB0_3:
"""
"""One work-group spins, without any barrier, until the other has stored a 1, behind its barrier."""


@pytest.mark.parametrize("order", [None, 1, 2, 3])
@pytest.mark.parametrize("waiting", [0, 1])
def test_a_work_group_goes_on_from_its_barrier_while_another_spins(waiting: int, order: int | None) -> None:
    def kinds(barrier: str) -> set[cdna.Kind]:
        flag = np.zeros(1, np.uint32)
        code = text(WAITS.format(waiting=waiting, barrier=barrier), threads=128, lds_bytes=512)
        found = cdna.run(code, (2,), [flag], sanitize=True, order=order, steps=300_000).findings
        assert flag[0] == 1
        return {item.kind for item in found}

    assert kinds("s_barrier") == set()
    if order is None:  # what the barrier was for is seen all the same
        assert cdna.Kind.LDS_RACE in kinds("s_nop 0")
