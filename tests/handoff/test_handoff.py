"""The hand-off to Triton's autotuner, without a GPU: a driver that only says which target it is, and no clock."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from project import REPOSITORY
from tuned_maps import (
    BASELINE,
    DOMAINS,
    PROGRAMS,
    StubDriver,
    joint_map,
    listed,
    resources,
    single_map,
    triton,
    value_map,
    verified,
)

import gluonmap
from gluonmap.export import python
from gluonmap.handoff import autotune, configs, dropped, early_config_prune, launches
from gluonmap.handoff.python_values import python_value
from gluonmap.model import codec
from gluonmap.model.candidate import Config
from gluonmap.model.errors import GluonmapError, UnknownKnob, UsageError
from gluonmap.model.joint_map import (
    Inertness,
    Tried,
    ValueClasses,
)
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.relations import Member
from gluonmap.model.space_map import KnobMap, Recipe, SpaceMap
from gluonmap.worker.arguments import Dtype, Pointer

tl = pytest.importorskip("triton.language")


# ---- what is in a configuration ------------------------------------------------------------------------------------


def test_a_config_names_every_knob_and_no_host_knob() -> None:
    found = joint_map(*PROGRAMS).configs()
    assert [config.all_kwargs() for config in found] == [
        {"BLOCK": 128, "SPLIT": 1, "GROUP": 1, "waves_per_eu": 0, "num_warps": 4, "num_ctas": 1, "num_stages": 2},
        {"BLOCK": 256, "SPLIT": 1, "GROUP": 1, "waves_per_eu": 0, "num_warps": 4, "num_ctas": 1, "num_stages": 2},
        {"BLOCK": 64, "SPLIT": 4, "GROUP": 1, "waves_per_eu": 0, "num_warps": 8, "num_ctas": 1, "num_stages": 1},
    ]
    assert [list(config.kwargs) for config in found] == [["BLOCK", "SPLIT", "GROUP", "waves_per_eu"]] * 3
    assert found[0] == triton.Config({"BLOCK": 128, "SPLIT": 1, "GROUP": 1, "waves_per_eu": 0}, 4, 2)


def test_configurations_that_differ_in_a_host_knob_alone_are_one() -> None:
    space = joint_map(verified("base"), verified("base", chunks=2), verified("a", chunks=2, BLOCK=256))
    assert [launch["BLOCK"] for launch in launches(space)] == [128, 256]


def test_fixed_options_are_in_it_and_fixed_parameters_are_not() -> None:
    recipe = Recipe(fixed={"kpack": 2, "num_ctas": 1, "EVEN": True})
    (found,) = joint_map(PROGRAMS[0], recipe=recipe, fixed={"EVEN": "True: set, not turned"}).configs()
    assert found.kwargs["kpack"] == 2
    assert "EVEN" not in found.all_kwargs()


def test_an_unmapped_launch_option_has_the_default_of_the_compiler() -> None:
    space = joint_map(PROGRAMS[0])
    less = {name: value for name, value in BASELINE.items() if name not in ("num_stages", "num_warps")}
    knobs = {name: knob for name, knob in space.knobs.items() if name in less}
    (found,) = replace(space, baseline=less, knobs=knobs, joint=None).configs()[:1]
    assert (found.num_warps, found.num_stages) == (4, 2)  # the AMD back end's; triton.Config has 3 stages


def test_a_derived_parameter_is_computed_from_knobs_or_left_to_the_caller() -> None:
    derive = {
        "TILES": "HALF * SPLIT",
        "HALF": "BLOCK // 2",
        "STEP": "cdiv(n, SPLIT)",
        "stride": "BLOCK",
        "host": "GROUP",
    }
    space = joint_map(
        PROGRAMS[1],
        recipe=Recipe(args={"n": 4096}, derive=derive),
        fixed={"TILES": "64: derived, …", "HALF": "64: derived, …", "STEP": "4096: derived, …"},
        specialisation={"x": "*fp16:16", "n": "i32:16", "stride": "i32:16"},
    )
    (found,) = space.configs()
    assert {n: v for n, v in found.kwargs.items() if n not in BASELINE} == {"HALF": 128, "TILES": 128}


def test_without_a_joint_part_single_values_are_handed_over() -> None:
    found = launches(single_map())
    assert [{n: v for n, v in launch.items() if v != BASELINE[n]} for launch in found] == [
        {}, {"BLOCK": 64}, {"BLOCK": 256}, {"SPLIT": 2}, {"GROUP": 4}, {"num_warps": 8}, {"waves_per_eu": 2},
    ]  # fmt: skip


def test_a_map_without_a_pass_is_refused_with_the_next_step() -> None:
    space = replace(single_map(), outcome="CRASHED", knobs={})
    with pytest.raises(UsageError, match=r"none passed.*gluonmap probe scale.py --kernel scale --target gfx950 --set"):
        space.configs()


def test_a_map_of_another_triton_is_warned_of() -> None:
    with pytest.warns(UserWarning, match=r"made with Triton 3\.0\.0, and this is .*gluonmap probe scale.py"):
        joint_map(*PROGRAMS, triton="3.0.0").configs()


def test_a_config_class_that_loses_keywords_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton.Config, "all_kwargs", lambda self: dict(self.kwargs))
    with pytest.raises(GluonmapError, match="passes on"):
        joint_map(*PROGRAMS).configs()


# ---- a limit -------------------------------------------------------------------------------------------------------


def test_a_program_that_does_not_fit_or_spills_is_dropped_with_the_reason() -> None:
    space = joint_map(
        verified("base", resources(spills=42)),
        verified("a", waves_per_eu=2),
        verified("b", resources(spills=8), BLOCK=256),
        verified("c", resources(occupancy=0), BLOCK=64),
    )
    assert dropped(space) == [
        (BASELINE, "42 registers spill, and none with waves_per_eu=2"),
        ({**BASELINE, "BLOCK": 64}, "not one work-group fits: too many registers or too much shared memory"),
    ]
    assert [launch["BLOCK"] for launch in launches(space)] == [128, 256]


def test_nothing_left_is_refused() -> None:
    with pytest.raises(UsageError, match="all 1 that passed do not fit"):
        joint_map(verified("base", resources(occupancy=0))).configs()


def test_a_limit_keeps_every_value_of_every_knob_that_matters() -> None:
    programs = [
        verified(f"{b}{s}{g}{w}", BLOCK=b, SPLIT=s, GROUP=g, waves_per_eu=w)
        for b in (128, 64, 256) for s in (1, 2, 4) for g in (1, 4) for w in (0, 2) if b * s <= 256
    ]  # fmt: skip
    space = joint_map(*programs)
    found = launches(space, 5)
    assert len(found) == 5
    assert found[0] == launches(space)[0]
    for name in ("BLOCK", "SPLIT", "GROUP", "waves_per_eu"):
        assert {launch[name] for launch in found} == set(DOMAINS[name])
    assert found == launches(space, 5)
    assert len(launches(space, 1000)) == len(programs)


def test_a_knob_that_does_not_matter_does_not_fill_a_limit() -> None:
    never = Inertness("num_stages", "", "num_stages changed nothing", 0, 4)
    programs = verified("base"), verified("a", num_stages=1, GROUP=4), verified("b", BLOCK=256), verified("c", SPLIT=2)
    found = launches(joint_map(*programs, inertness=(never,)), 2)
    assert [launch["num_stages"] for launch in found] == [2, 1]  # GROUP=4 comes with it; nothing else is like it


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="limit of 1 or more"):
        joint_map(*PROGRAMS).configs(0)


# ---- values that a map can only spell --------------------------------------------------------------------------------


def test_values_stored_as_python_text_become_objects() -> None:
    from triton.experimental.gluon import language as gl

    assert python_value("py:gl.float16", {}) == gl.float16
    assert python_value("py:float('-inf')", {}) == float("-inf")
    assert python_value("py:gl.SwizzledSharedLayout(1, 1, 1, order=[1, 0])", {}) == gl.SwizzledSharedLayout(
        1, 1, 1, [1, 0]
    )
    assert python_value("py:(MINE, [1, -2])", {"MINE": 7}) == (7, [1, -2])
    assert (python_value("bf16", {}), python_value(3, {})) == ("bf16", 3)


@pytest.mark.parametrize(
    "text",
    [
        "py:triton.compiler.os.system('true')",
        "py:__import__('os')",
        "py:MISSING",
        "py:1 +",
        "py:(lambda: 1)()",
        "py:print",
    ],
)
def test_a_map_cannot_run_python(text: str) -> None:
    with pytest.raises(UsageError, match="cannot be made here"):
        python_value(text, {})


# ---- pruning a list --------------------------------------------------------------------------------------------------


@pytest.fixture
def activate() -> Iterator[Callable[..., None]]:
    from triton.runtime import driver

    before = driver._active

    def to(backend: str = "hip", arch: str | int = "gfx950", warp_size: int = 64) -> None:
        driver.set_active(StubDriver(backend, arch, warp_size))

    to()
    yield to
    driver._active = before


HALF = SimpleNamespace(dtype="torch.float16", data_ptr=lambda: 0)


def moved(found: list[Any]) -> list[dict[str, Any]]:
    return [{n: v for n, v in c.all_kwargs().items() if n in BASELINE and v != BASELINE[n]} for c in found]


@pytest.mark.usefixtures("activate")
def test_failures_and_broken_constraints_are_dropped() -> None:
    tried = (Tried((64, 1, 4, 4, 2, 0, 1), "CRASHED", "doubt"),)
    prune = early_config_prune(joint_map(*PROGRAMS, tried=tried))
    given = [
        listed(),
        listed(BLOCK=256, SPLIT=4),
        listed(BLOCK=256),
        listed(BLOCK=64, GROUP=4),
        listed(BLOCK=64, SPLIT=2),
    ]
    assert moved(prune(given, {"x": HALF, "n": 4096}, grid=(1,))) == [{}, {"BLOCK": 256}, {"BLOCK": 64, "SPLIT": 2}]


@pytest.mark.usefixtures("activate")
def test_a_value_that_was_never_tried_is_dropped_unless_it_is_to_be_kept() -> None:
    given = [listed(), listed(BLOCK=512, SPLIT=1)]
    space = joint_map(*PROGRAMS, relations=())
    assert moved(early_config_prune(space)(given, {})) == [{}]
    assert moved(early_config_prune(space, unknown="keep")(given, {})) == [{}, {"BLOCK": 512}]
    with pytest.raises(UsageError, match="'drop'"):
        early_config_prune(space, unknown="ask")  # type: ignore[arg-type]


@pytest.mark.usefixtures("activate")
def test_an_option_that_the_map_held_elsewhere_is_a_value_never_tried() -> None:
    space = joint_map(*PROGRAMS, recipe=Recipe(fixed={"kpack": 1}))
    assert len(early_config_prune(space)([listed(), listed(kpack=1), listed(kpack=2)], {})) == 2


@pytest.mark.usefixtures("activate")
def test_later_configurations_of_one_program_are_dropped() -> None:
    only = Inertness("GROUP", "SPLIT = 1", "GROUP matters only if SPLIT = 1", 2, 2, Member("SPLIT", (1,)))
    same = ValueClasses("waves_per_eu", ((0, 2),))
    prune = early_config_prune(joint_map(*PROGRAMS, inertness=(only,), classes=(same,)))
    given = [listed(GROUP=4), listed(), listed(SPLIT=2), listed(SPLIT=2, GROUP=4), listed(waves_per_eu=2)]
    assert moved(prune(given, {})) == [{"GROUP": 4}, {}, {"SPLIT": 2}]


@pytest.mark.usefixtures("activate")
def test_without_a_joint_part_single_moves_are_known_and_merged() -> None:
    given = [listed(num_stages=1), listed(), listed(SPLIT=4), listed(SPLIT=2), listed(SPLIT=2, GROUP=4)]
    assert moved(early_config_prune(single_map())(given, {})) == [{"num_stages": 1}, {"SPLIT": 2}]
    kept = early_config_prune(single_map(), unknown="keep")(given, {})
    assert moved(kept) == [{"num_stages": 1}, {"SPLIT": 2}, {"SPLIT": 2, "GROUP": 4}]


@pytest.mark.usefixtures("activate")
def test_keywords_of_the_call_complete_a_configuration() -> None:
    prune = early_config_prune(joint_map(*PROGRAMS))
    given = [triton.Config({"BLOCK": b, "GROUP": 1}, num_stages=2) for b in (64, 128, 256)]
    assert [c.kwargs["BLOCK"] for c in prune(given, {"n": 4096}, SPLIT=4)] == [64]
    assert [c.kwargs["BLOCK"] for c in prune(given, {"n": 4096})] == [64, 128, 256]


@pytest.mark.usefixtures("activate")
def test_an_unset_option_has_the_compilers_default() -> None:
    space = joint_map(*PROGRAMS)
    shifted = replace(space, baseline={**BASELINE, "waves_per_eu": 2})
    unset = listed(GROUP=4)
    del unset.kwargs["waves_per_eu"]
    given = [unset, listed(GROUP=4, waves_per_eu=0), listed(GROUP=4, waves_per_eu=2)]
    assert early_config_prune(shifted)(given, {}) == [given[0], given[2]]


@pytest.mark.usefixtures("activate")
def test_never_an_empty_list_but_the_maps_own() -> None:
    prune = early_config_prune(joint_map(*PROGRAMS))
    with pytest.warns(UserWarning, match=r"none of 2 configurations \(the first has BLOCK=512, never tried\); its own"):
        found = prune([listed(BLOCK=512), listed(BLOCK=1024)], {})
    assert moved(found) == [{}, {"BLOCK": 256}]


@pytest.mark.usefixtures("activate")
def test_the_maps_own_agree_with_the_call_and_leave_its_keywords_out() -> None:
    prune = early_config_prune(joint_map(*PROGRAMS))
    with pytest.warns(UserWarning, match="its own"):
        (found,) = prune([triton.Config({"BLOCK": 256, "GROUP": 1}, num_stages=2)], {}, SPLIT=4)
    assert found.kwargs == {"BLOCK": 64, "GROUP": 1, "waves_per_eu": 0}
    given = [triton.Config({"BLOCK": 256, "GROUP": 1}, num_stages=2)]
    with pytest.warns(UserWarning, match="nor for any with what the call sets"):
        assert prune(given, {}, SPLIT=16) == given


@pytest.mark.usefixtures("activate")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"x": SimpleNamespace(dtype="torch.bfloat16", data_ptr=lambda: 0)}, r"x is \*bf16 and not \*fp16:16"),
        ({"x": None}, r"x is None and not \*fp16:16"),
        ({"n": 0.5}, "n is float and not i32:16"),
        ({"n": HALF}, r"n is \*fp16 and not i32:16"),
        ({"EVEN": False}, "EVEN is False and not True"),
    ],
)
def test_other_arguments_than_the_maps_are_warned_of_once_and_nothing_is_pruned(
    arguments: dict[str, Any], said: str
) -> None:
    prune = early_config_prune(joint_map(*PROGRAMS, recipe=Recipe(fixed={"EVEN": True})))
    given = [listed(BLOCK=512), listed()]
    with pytest.warns(UserWarning, match=said):
        assert prune(given, arguments) == given
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prune(given, arguments) == given


@pytest.mark.usefixtures("activate")
def test_unknown_types_contradict_nothing() -> None:
    prune = early_config_prune(joint_map(*PROGRAMS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert moved(prune([listed(), listed(BLOCK=512)], {"x": object(), "n": 7})) == [{}]


def test_one_targets_map_is_never_anothers(activate: Callable[..., None]) -> None:
    ours = joint_map(PROGRAMS[0], PROGRAMS[1])
    theirs = joint_map(PROGRAMS[0], target="gfx942", relations=(Member("BLOCK", (64,)),))
    prune = early_config_prune([ours, theirs])
    given = [listed(BLOCK=64, GROUP=4), listed(BLOCK=256, GROUP=4)]
    assert len(prune(given, {})) == 2
    activate("hip", "gfx942:sramecc+:xnack-")
    assert moved(prune(given, {})) == [{"BLOCK": 64, "GROUP": 4}]
    activate("cuda", 90, 32)
    with pytest.raises(UsageError, match=r"is of sm_90, the active target \(given: gfx942, gfx950\).*--depth joint"):
        prune(given, {})


@pytest.mark.usefixtures("activate")
def test_two_maps_of_one_target_and_no_map_are_refused() -> None:
    with pytest.raises(UsageError, match="2 maps of 'scale' are of gfx950"):
        early_config_prune([joint_map(*PROGRAMS), single_map()])([listed()], {})
    with pytest.raises(UsageError, match="no map was given"):
        early_config_prune([])


# ---- the decorator -------------------------------------------------------------------------------------------------


def scale(x, n, BLOCK, SPLIT, GROUP, num_warps, EXTRA):  # type: ignore[no-untyped-def]
    """A kernel's function: only its name and its parameters are looked at."""


class Recorder(triton.runtime.jit.KernelInterface):  # type: ignore[misc]
    """A jit function that is launched without a device, and remembers with what."""

    def __init__(self, function: Any = scale) -> None:
        self.fn, self.arg_names = function, list(function.__code__.co_varnames)
        self.launched: list[dict[str, Any]] = []

    def run(self, *args: Any, **kwargs: Any) -> None:
        self.launched.append(kwargs)


def slowest_first(kernel_call: Callable[[], None], quantiles: Any) -> list[float]:
    """A benchmark without a clock: the later a configuration comes, the better."""
    kernel_call()
    slowest_first.time -= 1.0  # type: ignore[attr-defined]
    return [slowest_first.time] * 3  # type: ignore[attr-defined]


slowest_first.time = 1e6  # type: ignore[attr-defined]


@pytest.mark.usefixtures("activate")
def test_the_first_launch_tunes_over_the_active_targets_map() -> None:
    inner = Recorder()
    kernel = autotune([single_map("gfx942"), joint_map(*PROGRAMS)], key=["n"], do_bench=slowest_first)(inner)
    assert isinstance(kernel, triton.runtime.jit.KernelInterface)
    assert not inner.launched
    kernel[(1,)](HALF, 4096, EXTRA=1)
    assert [launch["BLOCK"] for launch in inner.launched] == [128, 256, 64, 64]
    assert inner.launched[-1] == {
        "grid": (1,), "warmup": False, "EXTRA": 1, "BLOCK": 64, "SPLIT": 4, "GROUP": 1, "waves_per_eu": 0,
        "num_warps": 8, "num_ctas": 1, "num_stages": 1,
    }  # fmt: skip
    kernel[(1,)](HALF, 4096, EXTRA=1)
    assert len(inner.launched) == 5
    assert kernel.best_config.kwargs["BLOCK"] == 64
    assert len(kernel.tuner.configs) == 3


@pytest.mark.usefixtures("activate")
def test_a_limit_and_settings_go_to_the_tuner(tmp_path: Path) -> None:
    path = tmp_path / "scale.gfx950.json"
    codec.write(path, codec.dumps(joint_map(*PROGRAMS)))
    kernel = gluonmap.autotune(path, key=["n"], limit=2, reset_to_zero=["x"], do_bench=slowest_first)(Recorder())
    assert len(kernel.tuner.configs) == 2
    assert kernel.reset_to_zero == ["x"]
    assert kernel.warmup(HALF, 4096, grid=(1,), EXTRA=1) == [None, None]


def test_nothing_is_read_and_no_device_asked_before_the_first_launch(tmp_path: Path) -> None:
    kernel = autotune(tmp_path / "missing.json", key=["n"])(Recorder())
    assert (kernel.__name__, kernel.arg_names[:2]) == ("scale", ["x", "n"])
    assert not hasattr(kernel, "best_config")
    assert copy.copy(kernel).arg_names == kernel.arg_names


@pytest.mark.usefixtures("activate")
def test_an_unusable_map_is_an_error_on_the_first_launch(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the map"):
        autotune(tmp_path / "missing.json", key=["n"])(Recorder())[(1,)](HALF, 4096)
    with pytest.raises(UsageError, match="no map of 'scale' is of gfx950"):
        autotune(single_map("sm_90"), key=["n"])(Recorder())[(1,)](HALF, 4096)

    def other(x, n, BLOCK):  # type: ignore[no-untyped-def]
        """Another kernel."""

    with pytest.raises(UnknownKnob, match=r"'other' has no knob 'SPLIT'.*of another kernel"):
        autotune(single_map(), key=["n"])(Recorder(other))[(1,)](HALF, 4096)
    with pytest.raises(UsageError, match="leave configs= out"):
        autotune(single_map(), key=["n"], configs=[])


@triton.jit
def doubled(x, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """x: (n,) fp32, doubled in place."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < (n if not EVEN else 2147483647)
    tl.store(x + offsets, tl.load(x + offsets, inside) * 2, inside)


def test_it_stacks_with_heuristics_and_compiles_for_the_active_target(activate: Callable[..., None]) -> None:
    activate("cuda", 90, 32)  # the AMD back end would ask torch for the tensor's size
    even = triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
    x = Pointer(Dtype("fp32"))
    below = autotune(_doubled_map(), key=["n"], do_bench=slowest_first)(even(doubled))
    assert below.arg_names == doubled.arg_names
    tuner = even(autotune(_doubled_map(), key=["n"], do_bench=slowest_first)(doubled))
    assert tuner.arg_names == doubled.arg_names
    found = tuner.fn.warmup(x, 4096, EVEN=True, grid=(1,))
    assert [program.metadata.num_warps for program in found] == [4, 8]
    assert "cubin" in found[0].asm


def _doubled_map() -> SpaceMap:
    baseline: Config = {"BLOCK": 256, "num_warps": 4}
    values = tuple(value_map(v, Effect.BASELINE if v == 4 else Effect.LIVE, str(v)) for v in (4, 8))
    knobs = {"num_warps": KnobMap(KnobClass.LIVE, KnobKind.OPTION, 4, "by hand", values)}
    return replace(single_map("sm_90"), baseline=baseline, knobs=knobs)


# ---- imports -------------------------------------------------------------------------------------------------------


def test_importing_the_package_imports_nothing_else() -> None:
    code = (
        "import sys, gluonmap; print(sorted(m for m in sys.modules if m.split('.')[0] in ('msgspec','numpy','triton')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_public_names_are_there_and_others_are_not() -> None:
    assert gluonmap.SpaceMap is SpaceMap
    assert gluonmap.early_config_prune is early_config_prune
    with pytest.raises(AttributeError, match="no attribute 'tune'"):
        gluonmap.tune  # noqa: B018


def test_load_reads_a_map(tmp_path: Path) -> None:
    codec.write(tmp_path / "m.json", codec.dumps(joint_map(*PROGRAMS)))
    assert gluonmap.load(str(tmp_path / "m.json")) == joint_map(*PROGRAMS)
    assert configs(gluonmap.load(tmp_path / "m.json"), 1)[0].kwargs["BLOCK"] == 128


def test_descriptors_get_the_block_of_each_configuration() -> None:
    space = gluonmap.load(REPOSITORY / "reports/hopper/gemm_fp16.sm_90.json")
    config = next(c for c in space.configs() if c.kwargs["BLOCK_N"] == 64)
    call: dict[str, Any] = {"a_desc": SimpleNamespace(), "b_desc": SimpleNamespace()}
    config.pre_hook({**call, **config.all_kwargs()})
    assert call["a_desc"].block_shape == [config.kwargs["BLOCK_M"], config.kwargs["BLOCK_K"]]
    assert call["b_desc"].block_shape == [64, config.kwargs["BLOCK_K"]]
    assert call["a_desc"].layout.element_bitwidth == 16
    assert call["b_desc"].layout.swizzle_byte_width == min(128, 2 * config.kwargs["BLOCK_K"])
    assert space.configs() == space.configs()


def test_an_exported_module_sets_the_same_blocks() -> None:
    space = gluonmap.load(REPOSITORY / "reports/hopper/gemm_fp16.sm_90.json")
    names: dict[str, Any] = {}
    exec(python.render(space, 12), names)
    ours = space.configs(12)
    assert len(names["CONFIGS"]) == len(ours) == 12
    for theirs, mine in zip(names["CONFIGS"], ours, strict=True):
        calls = []
        for config in (theirs, mine):
            call: dict[str, Any] = {"a_desc": SimpleNamespace(), "b_desc": SimpleNamespace()}
            config.pre_hook(call)
            calls.append({name: vars(value) for name, value in call.items()})
        assert calls[0] == calls[1]
        assert theirs.all_kwargs() == mine.all_kwargs()
