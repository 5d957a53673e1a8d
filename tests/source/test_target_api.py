"""Targets that the uses of a Gluon API exclude."""

from __future__ import annotations

from kernel_sources import linked_functions

from gluonmap.model.verdict import Location
from gluonmap.source.target_api import ApiUse, excluded_targets, find_api_uses

GLUON = "from triton.experimental.gluon import language as gl\n"


def apis(body: str, *helpers: str, imports: str = GLUON) -> tuple[ApiUse, ...]:
    return find_api_uses(linked_functions(f"def kernel(a, X):\n    {body}\n", *helpers), {"kernel.py": imports})


def excluded(body: str, *helpers: str, imports: str = GLUON) -> dict[str, str]:
    return {target: use.api for target, use in excluded_targets(apis(body, *helpers, imports=imports)).items()}


def test_a_use_names_its_family_and_its_line() -> None:
    assert apis("x = 1\n    gl.amd.cdna4.mfma_scaled(x)") == (
        ApiUse("cdna4.mfma_scaled", Location("kernel", "kernel.py", 2)),
    )


def test_imports_of_the_file_are_followed() -> None:
    imports = "from triton.experimental.gluon.language.amd import cdna4 as c4\n"
    imports += "from triton.experimental.gluon.language.nvidia.hopper import tma, warpgroup_mma\n"
    imports += "import triton.experimental.gluon.language as ttgl\ncdna = ttgl.amd.cdna3\n"
    body = "c4.mfma(a)\n    tma.async_load(a)\n    warpgroup_mma(a)\n    cdna.buffer_load(a)"
    assert [use.api for use in apis(body, imports=imports)] == [
        "cdna4.mfma",
        "hopper.tma.async_load",
        "hopper.warpgroup_mma",
        "cdna3.buffer_load",
    ]


def test_portable_names_are_no_target_apis() -> None:
    assert apis("gl.store(a, gl.load(a))") == ()


def test_matrix_instructions_of_cdna3_run_on_both_cdna_targets() -> None:
    assert excluded("gl.amd.cdna3.mfma(a)") == {
        "gfx1250": "cdna3.mfma",
        "sm_90": "cdna3.mfma",
        "sm_100": "cdna3.mfma",
    }


def test_scaled_matrix_instructions_need_gfx950() -> None:
    assert set(excluded("gl.amd.cdna4.mfma_scaled(a)")) == {"gfx942", "gfx1250", "sm_90", "sm_100"}


def test_buffer_loads_exclude_only_nvidia_whatever_their_family() -> None:
    for family in ("cdna3", "cdna4", "cdna5", "gfx1250"):
        assert set(excluded(f"gl.amd.{family}.buffer_load(a)")) == {"sm_90", "sm_100"}


def test_buffer_loads_to_shared_memory_run_on_both_cdna_targets() -> None:
    assert set(excluded("gl.amd.cdna4.async_copy.buffer_load_to_shared(a)")) == {"gfx1250", "sm_90", "sm_100"}


def test_tensor_data_movers_need_gfx1250() -> None:
    assert set(excluded("gl.amd.gfx1250.tdm.async_load(a)")) == {"gfx942", "gfx950", "sm_90", "sm_100"}


def test_warp_group_instructions_need_sm_90() -> None:
    assert set(excluded("gl.nvidia.hopper.warpgroup_mma(a)")) == {"gfx942", "gfx950", "gfx1250", "sm_100"}


def test_barriers_run_on_both_nvidia_targets() -> None:
    assert set(excluded("gl.nvidia.blackwell.mbarrier.init(a)")) == {"gfx942", "gfx950", "gfx1250"}


def test_tensor_memory_needs_sm_100() -> None:
    assert set(excluded("gl.nvidia.blackwell.allocate_tensor_memory(a)")) == {"gfx942", "gfx950", "gfx1250", "sm_90"}


def test_a_layout_of_matrix_instructions_excludes_the_other_vendors() -> None:
    assert set(excluded("x = gl.amd.AMDMFMALayout(3)")) == {"gfx1250", "sm_90", "sm_100"}
    assert set(excluded("x = gl.amd.AMDWMMALayout(3)")) == {"gfx942", "gfx950", "sm_90", "sm_100"}
    assert set(excluded("x = gl.NVMMADistributedLayout(3)")) == {"gfx942", "gfx950", "gfx1250"}


def test_a_use_under_a_condition_of_the_compiler_excludes_nothing() -> None:
    body = "if X:\n        gl.amd.cdna4.mfma_scaled(a)\n    else:\n        gl.amd.cdna3.mfma(a)"
    assert [use.conditional for use in apis(body)] == [True, True]
    assert excluded(body) == {}


def test_a_use_under_a_condition_of_the_running_kernel_is_compiled() -> None:
    body = "i = gl.program_id(0) * 2\n    if i < X:\n        gl.amd.cdna4.mfma_scaled(a)"
    assert "gfx942" in excluded(body)


def test_a_helper_that_is_only_called_under_a_condition_excludes_nothing() -> None:
    helper = "def helper(a):\n    gl.amd.cdna4.mfma_scaled(a)\n"
    assert excluded("if X:\n        helper(a)", helper) == {}
    assert "gfx942" in excluded("helper(a)", helper)
