"""Maps with failures for the tests of reports."""

from __future__ import annotations

from gluonmap.model.candidate import Value
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.space_map import KnobMap, SpaceMap, ValueMap
from gluonmap.model.verdict import Resources

FILE = "kernels/cdna4/gemm_mxfp4.py"


BASELINE: dict[str, Value] = {
    "BLOCK_SIZE_M": 256,
    "BLOCK_SIZE_N": 256,
    "BLOCK_SIZE_K": 256,
    "GROUP_SIZE_M": 2,
    "NUM_KSPLIT": 1,
    "cache_modifier": None,
    "num_warps": 8,
    "num_stages": 2,
    "waves_per_eu": 0,
    "matrix_instr_nonkdim": 32,
    "kpack": 1,
    "xcd_remap": "",
}


TAKES = Resources(512, 65_536, 256, 128, 56, 0, 0, 0, None, 21_904, 1)


SPILLS = Resources(512, 65_536, 128, 64, 56, 42, 2, 172, None, 30_112, 4)


BASE = "b45e11aa00c1"


SURJECTIVE = (
    "Layout is expected to be surjective, i.e. every `out` coordinate can be reached by some `in` coordinate, "
    "but was:\n - register=1 -> (0, 1) | <dim0>"
)


def worked(value: Value, effect: Effect, digest: str = BASE, takes: Resources = TAKES, **more: object) -> ValueMap:
    return ValueMap(value, "PASS", effect, digest=digest, resources=takes, **more)  # type: ignore[arg-type]


def failed(
    value: Value, outcome: str, kind: str, stage: str, reason: str, line: int | None, **more: object
) -> ValueMap:
    fields = {"repeat": f"python -m gluonmap.worker probes/gemm_mxfp4/gfx950/{value}.json"} | more
    return ValueMap(value, outcome, Effect.ABORTING, reason, line, stage=stage, kind=kind, **fields)  # type: ignore[arg-type]


def aborts(value: Value, reason: str, *because: str) -> ValueMap:
    return failed(value, "CRASHED", "SIGABRT", "front end", reason, 101, file=FILE, exit_status=-6, because=because)


def knob(
    kind: KnobClass, baseline: Value, why: str, *values: ValueMap, equal: tuple[tuple[Value, ...], ...] = ()
) -> KnobMap:
    return KnobMap(kind, KnobKind.CONSTEXPR, baseline, why, values, equal)


def tile(name: str) -> KnobMap:
    return knob(
        KnobClass.PINNED,
        256,
        "every other value aborts the compiler",
        aborts(64, "Invalid basis 128 for a dimension of size 64", f"basis 128 of registers needs {name} > 128"),
        aborts(128, "Invalid basis 128 for a dimension of size 128", f"basis 128 of registers needs {name} > 128"),
        worked(256, Effect.BASELINE),
        aborts(512, SURJECTIVE),
    )


MXFP4 = SpaceMap(
    kernel="gemm_mxfp4",
    file=FILE,
    target="gfx950",
    triton="3.9.0",
    specialisation={
        "a_ptr": "*u8",
        "b_ptr": "*u8",
        "c_ptr": "*bf16",
        "a_scales_ptr": "*u8",
        "b_scales_ptr": "*u8",
        "M": "i32:16",
        "N": "i32:16",
        "K": "i32:16",
        "stride_k": "i32:1",
    },
    baseline=BASELINE,
    shape={"M": 4096, "N": 4096, "K": 8192},
    grid=(256, 1, 1),
    stable=True,
    resources=TAKES,
    digest=BASE,
    knobs={
        "BLOCK_SIZE_M": tile("BLOCK_SIZE_M"),
        "BLOCK_SIZE_N": tile("BLOCK_SIZE_N"),
        "BLOCK_SIZE_K": tile("BLOCK_SIZE_K"),
        "GROUP_SIZE_M": knob(
            KnobClass.LIVE,
            2,
            "other machine code; only while NUM_KSPLIT is 1",
            worked(1, Effect.LIVE, "61aa00000001", detail="instructions"),
            worked(2, Effect.BASELINE),
            worked(4, Effect.LIVE, "64aa00000001", detail="instructions"),
            worked(8, Effect.LIVE, "64aa00000001", detail="instructions"),
            equal=((4, 8),),
        ),
        "NUM_KSPLIT": knob(
            KnobClass.BOUNDED,
            1,
            "more splits than K allows are over budget",
            worked(1, Effect.BASELINE),
            worked(2, Effect.LIVE_HOST, detail="grid"),
            failed(64, "NO_RESOURCES", "budget", "llir", "shared memory 204,208 > 163,840 bytes", None),
            failed(128, "HUNG", "deadline", "amdgcn", "no end after 120 s", None),
        ),
        "cache_modifier": knob(
            KnobClass.LIVE,
            None,
            "other machine code",
            worked(None, Effect.BASELINE),
            worked("", Effect.INERT),
            worked(
                ".cg", Effect.LIVE, "c9aa00000001", detail="instructions", warnings=("error: couldn't allocate <reg>",)
            ),
            equal=((None, ""),),
        ),
        "num_warps": knob(
            KnobClass.PINNED,
            8,
            "three warp bases of the output layout mean eight warps",
            failed(
                4,
                "REJECTED",
                "RuntimeError",
                "front end",
                "Result has an invalid layout: #linear<\x1b[31m|\x1b[0m>",
                88,
            ),
            worked(8, Effect.BASELINE),
            failed(
                16,
                "REJECTED",
                "RuntimeError",
                "front end",
                "Result has an invalid layout: #linear<\x1b[31m|\x1b[0m>",
                88,
            ),
        ),
        "num_stages": knob(
            KnobClass.INERT,
            2,
            "declared and never read: identical machine code",
            worked(1, Effect.INERT),
            worked(2, Effect.BASELINE),
            worked(3, Effect.INERT),
            worked(4, Effect.INERT),
            equal=((1, 2, 3, 4),),
        ),
        "waves_per_eu": knob(
            KnobClass.LIVE,
            0,
            "occupancy is traded for registers",
            worked(0, Effect.BASELINE),
            worked(1, Effect.INERT),
            worked(2, Effect.LIVE, "e2aa00000001", detail="descriptor only"),
            worked(4, Effect.LIVE, "e4aa00000001", SPILLS, detail="instructions"),
            equal=((0, 1),),
        ),
        "matrix_instr_nonkdim": knob(
            KnobClass.INERT,
            32,
            "identical machine code",
            worked(0, Effect.INERT),
            worked(16, Effect.INERT),
            worked(32, Effect.BASELINE),
            equal=((0, 16, 32),),
        ),
        "kpack": knob(
            KnobClass.INERT,
            1,
            "identical machine code",
            worked(1, Effect.BASELINE),
            worked(2, Effect.INERT),
            equal=((1, 2),),
        ),
        "xcd_remap": knob(
            KnobClass.UNKNOWN,
            "",
            "no answer for its only other value",
            worked("", Effect.BASELINE),
            ValueMap(
                "on",
                "unknown",
                Effect.UNKNOWN,
                "exit status 255, no evidence",
                repeat="python -m gluonmap.worker on.json",
            ),
        ),
    },
    fixed={"EVEN_K": "computed by a heuristic", "GRID_MN": "computed by a heuristic", "dtype": "names a type"},
    not_probed={"num_ctas": "1 on AMD", "maxnreg": "not on AMD", "enable_fp_fusion": "changes numbers"},
    literals=("store layout: bases up to (128, 128), three warp bases",),
    notes=("M, N and K are taken to be divisible by 16; use <another> probe if they are not.",),
    unanswered=3,
    repeat="python -m gluonmap.worker probes/gemm_mxfp4/gfx950/baseline.json",
)


ABORTED = SpaceMap(
    kernel="gemm_mxfp4",
    file=FILE,
    target="gfx942",
    triton="3.9.0",
    specialisation={"a_ptr": "*u8"},
    baseline={"BLOCK_SIZE_M": 256},
    knobs={},
    outcome="CRASHED",
    reason="Invalid basis 128 for a dimension of size 64.\nsecond line",
    line=101,
    repeat="python -m gluonmap.worker baseline.json",
)
