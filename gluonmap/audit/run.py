"""The audits of one kernel on the chosen targets.

With a map of the kernel, entries that it knows are not compiled. Without one, an audit makes a small map of the entries
alone, around the first of them that passes, and does not store it. The user's code runs in a child process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from gluonmap.audit.findings import Audit
from gluonmap.audit.request import AuditRequest
from gluonmap.audit.target_audit import audit_target
from gluonmap.model import codec, targets
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event, Listener, about
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.settings import Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.runner.processes import Isolation


def run(settings: Settings, request: AuditRequest, chosen: Sequence[str], listen: Listener) -> Iterator[Audit]:
    """Yield the audit on each chosen target.

    If none is chosen, the targets are those that the files are named for, else the probe file's TARGETS, else those
    that have a map, else those that the kernel's API allows (a note reports these). Files named for another target are
    then left out.

    Raises:
        UsageError: the kernel, the map or a file cannot be used, or there is nothing to audit.
    """
    with Isolation(jobs=settings.jobs) as isolation:
        campaign = Campaign(settings, isolation, listen)
        names = [targets.find(name).name for name in chosen]
        each = list(dict.fromkeys(names or _targets(TargetChoice(campaign), request)))
        for target in each:
            of_target = campaign.with_listener(about(target, listen)) if len(each) > 1 else campaign
            mine = request
            if not names:
                kept = tuple(source for source in request.sources if source.target in ("", target))
                mine = dataclasses.replace(request, sources=kept)
            yield audit_target(of_target, mine, targets.find(target))


def _targets(choice: TargetChoice, request: AuditRequest) -> list[str]:
    campaign = choice.campaign
    if named := [source.target for source in request.sources if source.target]:
        return named
    if request.map:
        return [codec.read_map(Path(request.map)).target]
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
    """Return the target of a map of the kernel's file; "" for a map of another kernel and for other files."""
    if not path.name.startswith(f"{campaign.path.stem}."):
        return ""
    try:
        space = codec.read_map(path)
    except UsageError:  # a record of a race, for example
        return ""
    kernel = campaign.settings.overrides.kernel
    mine = Path(space.file).name == campaign.path.name and kernel in ("", space.kernel)
    return space.target if mine else ""
