"""Entries bound to a kernel: each key with its reader, and the defaults of missing keys."""

from __future__ import annotations

from inspections import inspected
from msgspec.structs import replace

from gluonmap.audit import bound_entries, target_audit
from gluonmap.audit.bound_entries import BoundEntry, KernelNames
from gluonmap.audit.shipped_files import ShippedEntry
from gluonmap.model.candidate import Config, Value
from gluonmap.model.targets import find
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.spec.probe_file import ProbeFile

KERNEL = """
@gluon.jit
def k(
    x, n, TILE: gl.constexpr, EVEN: gl.constexpr, SPLIT: gl.constexpr, num_stages: gl.constexpr, SPARE: gl.constexpr = 1
):
    gl.store(x + n, TILE + EVEN + SPLIT)
"""


def bound_to(config: Config, **given: Value) -> tuple[BoundEntry, Description, KernelNames]:
    """A configuration bound to the kernel above, whose host code derives SPLIT and turns GROUP and waves_per_eu."""
    inspection = inspected(KERNEL, heuristic=("EVEN",))
    derive = {"SPLIT": "n // GROUP"}
    names = bound_entries.names_of(inspection, derive, ["(n // TILE,)"])
    overrides = Overrides(
        config={"TILE": 64, "num_stages": 2},
        domains={"TILE": (64, 128), "waves_per_eu": (0, 2), "GROUP": (1, 2)},
        sets={"GROUP": 1, "waves_per_eu": 2},
        args={"x": "*fp16", "n": 64},
        derive=derive,
        grid="(n // TILE,)",
    )
    description = describe(inspection, find("gfx950"), ProbeFile(knobs={"num_stages": (2, 3)}), overrides)
    bound = bound_entries.bind_entry(ShippedEntry("c.json", "any", config, sizes={"n": 32, "m": 5}), names, given)
    return bound_entries.with_defaults(bound, description, names), description, names


def test_keys_are_sorted_by_who_reads_them() -> None:
    config: Config = {"TILE": 128, "EVEN": 1, "SPLIT": 2, "GROUP": 2, "num_warps": 8, "TILES": 1}
    bound, _, names = bound_to(config)
    assert bound.unknown == ("TILES",)
    assert bound.overridden == {"EVEN": "@triton.heuristics computes it", "SPLIT": "the host computes it: n // GROUP"}
    assert bound.moves == {"TILE": 128, "GROUP": 2, "num_warps": 8, "n": 32, "waves_per_eu": 0}
    assert bound.sizes == {"n": 32}
    assert [str(names.kind(n)) for n in ("TILE", "num_stages", "kpack", "GROUP", "n", "EVEN")] == [
        "constexpr", "constexpr and option", "option", "host", "None", "None",
    ]  # fmt: skip
    assert names.unread == {"num_stages", "SPARE"}


def test_an_unset_option_has_the_compilers_default_not_the_baselines_value() -> None:
    bound, description, _ = bound_to({"TILE": 64})
    assert description.baseline["waves_per_eu"] == 2
    assert bound.defaults == {"waves_per_eu": 0}
    assert bound_to({"TILE": 64}, waves_per_eu=2)[0].moves["waves_per_eu"] == 2


def test_an_option_at_its_default_that_nothing_turns_is_as_good_as_left_out() -> None:
    bound, description, names = bound_to({"TILE": 64, "kpack": 1})
    assert "kpack" not in bound.moves
    bound, description, names = bound_to({"TILE": 64, "kpack": 2})
    candidate = bound_entries.extended(description, bound.moves, names).candidate(bound.moves)
    assert (candidate.config["kpack"], candidate.args["n"], candidate.config["SPLIT"]) == (2, 32, 32)


def test_sizes_that_names_tell_are_noted_where_they_make_another_program() -> None:
    bound, description, names = bound_to({"TILE": 64})  # for n = 32; the map's n is 64, and SPLIT is made of it
    notes = list(target_audit._default_notes([bound], description, names))
    assert notes[0] == "compiled for the sizes in the names of file and entry: n=32 (any)"
    same = replace(bound, moves={**bound.moves, "n": 64}, sizes={"n": 64})
    assert not any("sizes" in note for note in target_audit._default_notes([same], description, names))


def test_options_that_somebody_wrote_are_tried_at_all_their_values() -> None:
    bounds = [bound_to({"TILE": tile, "num_warps": 8, "num_stages": 3})[0] for tile in (128, 64)]
    found = bound_entries.domains_of(bounds, bound_to({})[2], find("gfx950"))
    assert found == {"TILE": (64, 128), "num_warps": (8,), "num_stages": (1, 2, 3, 4), "waves_per_eu": (0,)}
