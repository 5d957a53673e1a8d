"""Asks what an audit needs to know, and puts it together: `run` with compiles, `unasked` from a map alone.

With a map of the kernel, entries that it knows are not compiled; without one, a small one is made of the entries alone,
around the first of them that passes, and not stored. Whatever is of the user's making runs in a child.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from gluonmap.audit.findings import Audit
from gluonmap.audit.one_target import audit
from gluonmap.audit.request import Wanted
from gluonmap.model import codec, targets
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event, Listener, about
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.settings import Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.runner.processes import Isolation

__all__ = ["Wanted", "run"]


def run(settings: Settings, wanted: Wanted, chosen: Sequence[str], listen: Listener) -> Iterator[Audit]:
    """The audits of all chosen targets; none chosen: those that the files are named for, else those of the probe file's
    TARGETS, else those that have a map, else those that the kernel's API allows, which a note tells. A file that is
    named for another target is then left out.

    Raises:
        UsageError: a kernel, map or file that cannot be used, or nothing to audit.
    """
    with Isolation(jobs=settings.jobs) as isolation:
        campaign = Campaign(settings, isolation, listen)
        names = [targets.find(name).name for name in chosen]
        each = list(dict.fromkeys(names or _targets(TargetChoice(campaign), wanted)))
        for target in each:
            of_target = campaign.with_listener(about(target, listen)) if len(each) > 1 else campaign
            mine = wanted
            if not names:
                kept = tuple(source for source in wanted.sources if source.target in ("", target))
                mine = dataclasses.replace(wanted, sources=kept)
            yield audit(of_target, mine, targets.find(target))


def _targets(choice: TargetChoice, wanted: Wanted) -> list[str]:
    campaign = choice.campaign
    if named := [source.target for source in wanted.sources if source.target]:
        return named
    if wanted.map:
        return [codec.read_map(Path(wanted.map)).target]
    if declared := choice.declared_targets():
        return list(declared)
    mapped = [name for path in campaign.settings.root.glob(_MAPS) if (name := _target_of(path, campaign))]
    if mapped:
        return sorted(set(mapped))
    found = [target.name for target in choice.default_targets()]
    which = f"{found[0]} alone" if len(found) == 1 else f"all {len(found)} targets, {', '.join(found)}"
    campaign.listen(Event("note", f"no target named: auditing {which} (--target)"))
    return found


_MAPS = "reports/**/*.json"


def _target_of(path: Path, campaign: Campaign) -> str:
    """The target of a map of the kernel's file; "" for a map of another one, and for what is no map."""
    if not path.name.startswith(f"{campaign.path.stem}."):
        return ""
    try:
        space = codec.read_map(path)
    except UsageError:  # a record of a race, for one
        return ""
    kernel = campaign.settings.overrides.kernel
    mine = Path(space.file).name == campaign.path.name and kernel in ("", space.kernel)
    return space.target if mine else ""
