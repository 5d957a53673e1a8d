"""The limits of the targets, by hand-computed examples."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from project import REPOSITORY

import gluonmap
from gluonmap import cdna
from gluonmap.cli import completion
from gluonmap.cli.command_group import cli
from gluonmap.constraints.shared_memory import likely_limit
from gluonmap.model import targets
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UnknownTarget
from gluonmap.model.verdict import Location, Resources
from gluonmap.report import map_header
from gluonmap.source.target_api import ApiUse, check_api_groups, excluded_targets

PACKAGE = Path(gluonmap.__file__).parent

GFX942, GFX950 = targets.find("gfx942"), targets.find("gfx950")
SM_90, SM_100 = targets.find("sm_90"), targets.find("sm_100")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gfx942", "gfx942"), ("cdna3", "gfx942"), ("CDNA4", "gfx950"), (" gfx1250 ", "gfx1250"), ("sm_90", "sm_90"),
        ("sm90", "sm_90"), ("hopper", "sm_90"), ("SM100", "sm_100"), ("blackwell", "sm_100"),
    ],
)  # fmt: skip
def test_a_target_is_found_by_name_and_alias(given: str, name: str) -> None:
    assert targets.find(given).name == name


@pytest.mark.parametrize(("given", "meant"), [("gfx941", "gfx942"), ("sm_91", "sm_90"), ("cdna", "cdna")])
def test_the_error_for_an_unknown_target_names_the_nearest_and_the_listing_command(given: str, meant: str) -> None:
    with pytest.raises(UnknownTarget, match=rf"no target '{given}'.*Did you mean {meant}.*gluonmap targets"):
        targets.find(given)


def test_an_empty_name_is_no_target() -> None:
    with pytest.raises(UnknownTarget):
        targets.find("")


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "used", "over"),
    [
        (GFX942, Resources(256, 65_536), ""),
        (GFX942, Resources(256, 65_537), "65,537 bytes of shared memory > 65,536"),
        (GFX950, Resources(256, 163_840), ""),
        (GFX950, Resources(256, 163_841), "163,841 bytes of shared memory > 163,840"),
        (targets.find("gfx1250"), Resources(256, 327_681), "327,681 bytes of shared memory > 327,680"),
        (SM_90, Resources(128, 232_449), "232,449 bytes of shared memory > 232,448"),
        (GFX942, Resources(1024, 0), ""),
        (GFX942, Resources(2048, 0), "2,048 threads > 1,024"),
        (SM_90, Resources(1024, 0, vgpr=64), ""),
        (SM_90, Resources(1024, 0, vgpr=65), "65 registers x 1024 threads = 73,728 > 65,536"),
        (SM_90, Resources(256, 0, vgpr=255), ""),
        (SM_90, Resources(384, 0, vgpr=168), ""),
        (SM_90, Resources(384, 0, vgpr=169), "169 registers x 384 threads = 67,584 > 65,536"),
        (GFX942, Resources(1024, 0, vgpr=512), ""),
        (SM_100, Resources(128, 0, tensor_columns=512), ""),
        (SM_100, Resources(128, 0, tensor_columns=513), "513 columns of tensor memory > 512"),
        (SM_90, Resources(128, 0, tensor_columns=513), ""),
    ],
)
def test_a_budget_is_exceeded_from_one_unit_more_on(target: targets.Target, used: Resources, over: str) -> None:
    assert targets.over_budget(target, used) == over


def test_a_shared_memory_size_that_wrapped_around_is_over_any_budget() -> None:
    assert "wrapped" in targets.over_budget(GFX950, Resources(256, -2_147_483_648))


# --- occupancy --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "used", "waves"),
    [
        # 512 registers of each lane slot: 64 a wave are 8 waves, 65 count as 72 and are 7.
        (GFX942, Resources(256, 0, vgpr=64), 8),
        (GFX942, Resources(256, 0, vgpr=65), 7),
        (GFX942, Resources(256, 0, vgpr=1), 8),
        (GFX942, Resources(256, 0, vgpr=128), 4),
        (GFX942, Resources(256, 0, vgpr=256), 2),
        (GFX942, Resources(256, 0, vgpr=257), 1),
        (GFX942, Resources(256, 0, vgpr=512), 1),
        # 8 waves of a group need 2 a SIMD, but 1 fits: not even one group does.
        (GFX942, Resources(512, 0, vgpr=512), 0),
        # 3 waves fit a SIMD, so 12 a unit: one group of 8, which is 2 a SIMD.
        (GFX942, Resources(512, 0, vgpr=168), 2),
        # One group of 4 waves takes 32 KiB of 64: two groups, 2 waves a SIMD; of 160 KiB: five groups, 5 waves.
        (GFX942, Resources(256, 32_768, vgpr=64), 2),
        (GFX950, Resources(256, 32_768, vgpr=64), 5),
        # The whole LDS: one group; over it: none.
        (GFX942, Resources(256, 65_536, vgpr=64), 1),
        (GFX942, Resources(256, 65_537, vgpr=64), 0),
        # One wave alone in a group of half the LDS: 2 waves in a unit, on two of its SIMDs.
        (GFX942, Resources(64, 32_768, vgpr=64), 1),
    ],
)
def test_occupancy_is_what_registers_and_lds_leave_room_for(
    target: targets.Target, used: Resources, waves: int
) -> None:
    assert targets.occupancy(target, used) == waves


@pytest.mark.parametrize("target", [SM_90, SM_100, targets.find("gfx1250")], ids=lambda t: t.name)
def test_occupancy_of_other_targets_is_not_known(target: targets.Target) -> None:
    assert targets.occupancy(target, Resources(128, 0, vgpr=64)) is None


def test_occupancy_without_a_register_count_is_not_known() -> None:
    assert targets.occupancy(GFX942, Resources(128, 0)) is None


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "option", "default", "domain"),
    [
        (GFX942, "num_warps", 4, (1, 2, 4, 8, 16)),
        (GFX942, "num_warps", 3, (3, 1, 2, 4, 8, 16)),
        (GFX942, "waves_per_eu", 0, (0, 1, 2, 3, 4)),
        (GFX942, "schedule_hint", "none", ("none", "attention", "memory-bound-attention")),
        (GFX942, "schedule_hint", "", None),  # has lost its meaning after 3.6
        (GFX942, "maxnreg", None, None),
        (GFX942, "debug", False, None),
        (SM_90, "maxnreg", None, (None, 128, 168, 255)),
        (SM_90, "waves_per_eu", 0, None),
        (SM_90, "num_ctas", 1, (1, 2, 4)),
        (GFX942, "num_ctas", 1, None),
    ],
)
def test_an_option_is_a_knob_where_its_target_has_values_worth_trying(
    target: targets.Target, option: str, default: Value, domain: tuple[Value, ...] | None
) -> None:
    assert targets.option_domain(target, option, default) == domain


def test_every_option_that_is_no_knob_has_a_reason() -> None:
    assert targets.why_not_a_knob(GFX942, "allow_flush_denorm") == "changes numbers"
    assert targets.why_not_a_knob(GFX942, "schedule_hint") == "has no effect in this Triton"
    assert targets.why_not_a_knob(GFX942, "brand_new") == "is not known to be worth turning"


def test_the_default_of_every_domain_is_among_its_values_once() -> None:
    for target in targets.TARGETS:
        for option, domain in target.option_domains.items():
            for default in domain:
                found = targets.option_domain(target, option, default)
                assert found is not None
                assert found.count(default) == 1


@pytest.mark.parametrize(
    ("used", "warps"),
    [
        # 32 registers a thread: all 64 warps, in blocks of 8.
        (Resources(256, 0, vgpr=32), 64),
        # 33 are given out as 40: 1,280 a warp, 12 of which fit a quarter of the file: 48 warps.
        (Resources(256, 0, vgpr=33), 48),
        (Resources(128, 0, vgpr=255), 8),
        # 32 blocks at most.
        (Resources(32, 0, vgpr=32), 32),
        # A block of half the shared memory, less its KiB: two; one byte more: one.
        (Resources(128, 115_712, vgpr=32), 8),
        (Resources(128, 115_713, vgpr=32), 4),
        # Registers for 16 warps: five blocks of 3.
        (Resources(96, 0, vgpr=128), 15),
        # Registers for 8 warps; a block has 16.
        (Resources(512, 0, vgpr=255), 0),
    ],
)
def test_warps_of_a_multiprocessor_are_what_registers_shared_memory_and_blocks_leave_room_for(
    used: Resources, warps: int
) -> None:
    assert targets.resident_warps(SM_90, used) == warps


def test_warps_of_a_multiprocessor_are_not_known_with_tensor_memory_and_on_other_makers() -> None:
    assert targets.resident_warps(SM_100, Resources(128, 0, vgpr=32)) == 64
    assert targets.resident_warps(SM_100, Resources(128, 0, vgpr=32, tensor_columns=128)) is None
    assert targets.resident_warps(GFX942, Resources(128, 0, vgpr=32)) is None
    assert targets.resident_warps(SM_90, Resources(128, 0)) is None


# --- one row is enough ------------------------------------------------------------------------------------------------

GFX9999 = replace(
    targets.find("gfx1250"),
    name="gfx9999",
    alias="moon1",
    devices=("mx9999",),
    arch="gfx9999",
    shared_bytes=70_000,
    gluon_api=frozenset({"amd", "amd.rdna4"}),
    executed_on_cpu=True,
    option_domains={"num_warps": (2, 4)},
)
"""A target that the table does not have."""


@pytest.fixture
def with_gfx9999(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "TARGETS", (*targets.TARGETS, GFX9999))


@pytest.mark.usefixtures("with_gfx9999")
@pytest.mark.parametrize("given", ["gfx9999", "moon1", "MX9999"])
def test_a_new_row_is_found_by_name_alias_and_device(given: str) -> None:
    assert targets.find(given) is GFX9999
    assert targets.named(targets.name_of("hip", "gfx9999:sramecc-")) is GFX9999


@pytest.mark.usefixtures("with_gfx9999")
def test_a_new_row_brings_its_domains_and_budget() -> None:
    assert targets.option_domain(GFX9999, "num_warps", 4) == (2, 4)
    assert targets.option_domain(GFX9999, "waves_per_eu", 0) is None
    assert targets.over_budget(GFX9999, Resources(64, 70_001)) == "70,001 bytes of shared memory > 70,000"
    assert likely_limit([66_000], [71_000]) == 70_000


@pytest.mark.usefixtures("with_gfx9999")
@pytest.mark.parametrize(
    ("api", "excluded"), [("amd.warp_id", False), ("rdna4.wmma", False), ("cdna3.mfma", True), ("hopper.tma.x", True)]
)
def test_a_new_row_says_which_api_compiles(api: str, excluded: bool) -> None:
    use = ApiUse(api, Location("kernel", "kernel.py", 1))
    assert ("gfx9999" in excluded_targets([use])) is excluded


@pytest.mark.usefixtures("with_gfx9999")
def test_a_new_row_is_executed_on_the_cpu_if_it_says_so() -> None:
    assert targets.executed_on_cpu()[-1] == "gfx9999"


@pytest.mark.usefixtures("with_gfx9999")
def test_reports_and_the_command_line_name_a_new_row() -> None:
    assert map_header.target_name("gfx9999") == "gfx9999 (moon1)"
    listed = CliRunner().invoke(cli, ["targets", "--json"])
    row = json.loads(listed.output)[-1]
    assert (row["target"], row["alias"], row["shared_bytes"]) == ("gfx9999", "moon1", 70_000)
    offered = completion.targets(click.Context(cli), cli.commands["probe"].params[0], "gfx9")
    assert [item.value for item in offered] == ["gfx942", "gfx950", "gfx9999"]


@pytest.mark.parametrize("groups", [frozenset[str](), frozenset({"amd", "amd.rdna5"})])
def test_a_row_must_name_groups_of_the_api_that_the_rules_know(
    groups: frozenset[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets, "TARGETS", (replace(GFX9999, gluon_api=groups),))
    with pytest.raises(ValueError, match="gfx9999 names groups of Gluon's API"):
        check_api_groups()


def test_the_executor_knows_the_targets_that_the_table_says_it_executes() -> None:
    assert targets.executed_on_cpu() == cdna.TARGETS


def test_an_api_of_the_next_generation_is_the_alias_of_another_row() -> None:
    for target in targets.TARGETS:
        if target.predates_api:
            assert targets.find(target.predates_api).name != target.name


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda target: target.name)
def test_the_documentation_lists_the_target(target: targets.Target) -> None:
    listed = f"{target.name} (`{target.alias}`)" if target.alias else f"{target.name},"
    assert listed in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("target", targets.executed_on_cpu())
def test_the_documentation_says_where_code_is_executed(target: str) -> None:
    helps = [cli.commands["run"].help, *(getattr(item, "help", "") for item in cli.commands["probe"].params)]
    assert sum(target in (text or "") for text in helps) == 2
    for page in ("README.md", "docs/run.md", "docs/cdna.md"):
        assert target in (REPOSITORY / page).read_text(), page
