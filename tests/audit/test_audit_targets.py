"""The targets of an audit whose files name none."""

from __future__ import annotations

from pathlib import Path

from maps import (
    PAIR,
    PAIR_RULE,
    pair_map,
)
from msgspec.structs import replace

from gluonmap.audit import run as auditor
from gluonmap.audit.request import AuditRequest
from gluonmap.audit.shipped_files import FileForm, ShippedFile
from gluonmap.model import codec
from gluonmap.model.targets import TARGETS, Target
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.settings import Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.runner.processes import Isolation


class AnyTarget(TargetChoice):
    """The choice for a kernel that all targets can compile, on a machine without a GPU."""

    def default_targets(self) -> list[Target]:
        return list(TARGETS)


def audited_on(folder: Path, notes: list[str]) -> list[str]:
    """The targets of an audit of a file that names none, and what is said about them."""
    chosen = Settings(folder / "kernels" / "pair.py", folder)
    campaign = Campaign(chosen, Isolation(jobs=1), lambda event: notes.append(event.text))
    return auditor._targets(AnyTarget(campaign), AuditRequest(sources=(ShippedFile("c.json", FileForm.JSON),)))


def test_a_file_that_names_no_target_is_audited_where_the_project_ships(tmp_path: Path) -> None:
    notes: list[str] = []
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "pair.py").write_text(PAIR)
    every = ["gfx942", "gfx950", "gfx1250", "sm_90", "sm_100"]
    assert audited_on(tmp_path, notes) == every
    assert notes == [f"no target named: auditing all 5 targets, {', '.join(every)} (--target)"]
    space = pair_map(PAIR_RULE, "3.9.0")
    for name in ("gfx950", "gfx942"):
        codec.write(tmp_path / f"reports/pair.{name}.json", codec.dumps(replace(space, target=name)))
    codec.write(tmp_path / "reports/other.sm_90.json", codec.dumps(replace(space, target="sm_90")))
    assert audited_on(tmp_path, notes) == ["gfx942", "gfx950"]
    (tmp_path / "probes").mkdir()
    (tmp_path / "probes" / "pair.py").write_text("TARGETS = {'gfx950': {}}\n")
    assert audited_on(tmp_path, notes) == ["gfx950"]
    assert len(notes) == 1
