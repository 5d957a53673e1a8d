"""Resources of the programs of equal configurations in both maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from gluonmap.diff.bridge import Bridge, PairedJudgement
from gluonmap.diff.circumstances import vendor
from gluonmap.model.candidate import Config
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.verdict import Figures, Resources
from gluonmap.query.observations import Observation


class Tolerance(msgspec.Struct, frozen=True):
    """Largest growth that is no regression."""

    percent: float = 10.0
    """Growth in percent of the first map's number."""
    registers: int = 8
    """Registers that a device allocates at once. Registers and spills may grow by as many at any percentage."""


class ProgramPair(msgspec.Struct, frozen=True):
    """A configuration that passed in both maps, with the resources of its two programs."""

    config: Config
    moves: Config
    before_digest: str
    after_digest: str
    before: Resources
    after: Resources
    before_figures: Figures | None = None
    """Counts of a run on the CPU. None unless both maps have one at the same sizes."""
    after_figures: Figures | None = None

    @property
    def one_program(self) -> bool:
        """Return whether the device executes and reserves the same in both maps."""
        return self.before_digest == self.after_digest


class Growth(msgspec.Struct, frozen=True):
    """Growth of one resource of one configuration."""

    moves: Config
    resource: str
    """Name of a field of `Resources`."""
    before: int
    after: int

    @property
    def amount(self) -> int:
        """Return the growth; negative: a fall."""
        return self.after - self.before


class ResourceChange(msgspec.Struct, frozen=True):
    """Change of one resource over all pairs of programs, equal pairs counted once."""

    resource: str
    compared: int
    grew: int
    shrank: int
    most: Growth | None
    """The largest growth."""
    least: Growth | None
    """The largest fall."""


def program_pairs(bridge: Bridge, judgements: Iterable[PairedJudgement]) -> list[ProgramPair]:
    """Return the configurations that passed in both maps and whose programs both know; none for two vendors."""
    if vendor(bridge.before) != vendor(bridge.after):
        return []
    found = []
    before, after = (judge.observations for judge in bridge.judges)
    for item in judgements:
        one, other = item.before, item.after
        passed = {one.outcome, other.outcome} <= set(COMPILED)
        if passed and one.digest and other.digest and one.resources and other.resources:
            moves = bridge.moves(item.config)
            ran, again = before.get(item.config), after.get(item.other)
            counted = (ran.figures, again.figures) if ran and again and _same_sizes(ran, again) else (None, None)
            found.append(
                ProgramPair(item.config, moves, one.digest, other.digest, one.resources, other.resources, *counted)
            )
    return found


def _same_sizes(one: Observation, other: Observation) -> bool:
    """Return whether both were executed at the same sizes, so that their counts can be compared."""
    return bool(one.executed and other.executed) and (one.check.sizes if one.check else ()) == (
        other.check.sizes if other.check else ()
    )


def distinct_programs(pairs: Iterable[ProgramPair]) -> list[ProgramPair]:
    """Return one pair of configurations for each pair of programs: the one with the fewest moves."""
    found: dict[tuple[str, str], ProgramPair] = {}
    for pair in sorted(pairs, key=lambda pair: len(pair.moves)):
        found.setdefault((pair.before_digest, pair.after_digest), pair)
    return list(found.values())


def growth(pair: ProgramPair, resource: str) -> Growth | None:
    """Return the growth of one resource of a pair; None where one of the programs does not have it."""
    one, other = getattr(pair.before, resource), getattr(pair.after, resource)
    return None if one is None or other is None else Growth(pair.moves, resource, one, other)


def resource_changes(pairs: Iterable[ProgramPair]) -> Iterator[ResourceChange]:
    """Yield the change of each resource that both programs of some pair have."""
    programs = distinct_programs(pairs)
    for name in Resources.__struct_fields__:
        all_growth = [found for pair in programs if (found := growth(pair, name))]
        if not all_growth:
            continue
        most, least = max(all_growth, key=lambda g: g.amount), min(all_growth, key=lambda g: g.amount)
        yield ResourceChange(
            name,
            len(all_growth),
            sum(found.amount > 0 for found in all_growth),
            sum(found.amount < 0 for found in all_growth),
            most if most.amount > 0 else None,
            least if least.amount < 0 else None,
        )


def excessive_growth(pair: ProgramPair, tolerance: Tolerance, vendor_name: str) -> Iterator[Growth]:
    """Yield the growth of spills and registers beyond the tolerance. Code that begins to spill always exceeds it."""
    # NVIDIA reports spills in bytes of local memory; a register is four bytes.
    floors = {"spills": tolerance.registers * (1 if vendor_name == "AMD" else 4), "vgpr": tolerance.registers}
    for name, floor in floors.items():
        found = growth(pair, name)
        if found is None:
            continue
        begins = name == "spills" and found.before == 0 < found.after
        if begins or (found.amount > floor and found.after > found.before * (1 + tolerance.percent / 100)):
            yield found
