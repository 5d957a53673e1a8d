"""Entry points of the package: one command on all wanted targets, with processes that end with the command.

Targets are wanted by name or alias; none wanted: this machine's device if it has one, else all that the kernel's API
allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from gluonmap.model import targets
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Listener, about
from gluonmap.model.targets import Target
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.execute_one import ExecutedConfiguration, execute_configuration
from gluonmap.probe.find_default import DefaultSearch, find_default
from gluonmap.probe.map_writer import StoredMap
from gluonmap.probe.session import probe_target
from gluonmap.probe.settings import Settings
from gluonmap.probe.target_choice import TargetChoice
from gluonmap.runner.processes import Isolation

Result = TypeVar("Result")


def probe_targets(settings: Settings, wanted: Sequence[str], listen: Listener) -> Iterator[StoredMap]:
    """Map the kernel on each target, and yield the stored maps."""
    return _each(settings, wanted, listen, probe_target)


def find_defaults(settings: Settings, wanted: Sequence[str], listen: Listener, budget: int) -> Iterator[DefaultSearch]:
    """Search the smallest change of a failing baseline that passes, with `budget` compiles at most on each target."""
    return _each(settings, wanted, listen, lambda campaign, target: find_default(campaign, target, budget))


def execute_on_targets(
    settings: Settings, wanted: Sequence[str], listen: Listener, sizes: Mapping[str, Value], trace: Path | None
) -> Iterator[ExecutedConfiguration]:
    """Execute one configuration of each target on the CPU (see `execute_configuration`). `settings.stage` is RUN."""
    return _each(
        settings, wanted, listen, lambda campaign, target: execute_configuration(campaign, target, sizes, trace)
    )


def probe_this_device(settings: Settings, listen: Listener) -> StoredMap:
    """Map the kernel on this machine's device; compile what its journal has no answer for.

    Raises:
        UsageError: there is no device here that gluonmap knows.
    """
    with Isolation(jobs=settings.jobs, modules=settings.modules) as isolation:
        campaign = Campaign(settings, isolation, listen)
        if (target := campaign.device.target) is None:
            raise UsageError(
                "a race needs a GPU that torch and Triton can use, and this machine has none. "
                "A map of compiles needs none: gluonmap probe KERNEL."
            )
        return probe_target(campaign, target)


def _each(
    settings: Settings, wanted: Sequence[str], listen: Listener, do: Callable[[Campaign, Target], Result]
) -> Iterator[Result]:
    modules = settings.modules if settings.stage.executes else ()
    with Isolation(jobs=settings.jobs, modules=modules) as isolation:
        campaign = Campaign(settings, isolation, listen)
        choice = TargetChoice(campaign)
        chosen = [targets.find(name) for name in wanted]
        choice.require_stage(chosen)
        chosen = chosen or choice.default_targets()
        names = list(dict.fromkeys(target.name for target in chosen))
        for name in names:
            of_target = campaign.with_listener(about(name, listen)) if len(names) > 1 else campaign
            yield do(of_target, targets.find(name))
