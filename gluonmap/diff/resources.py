"""What the programs of equal configurations take, in the one map and in the other."""

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
    """Growth that is no regression yet."""

    percent: float = 10.0
    registers: int = 8
    """What a device hands out at once; registers and spills may grow by as much whatever the percentage."""


class ProgramPair(msgspec.Struct, frozen=True):
    """A configuration that passed in both maps, and what its programs take."""

    config: Config
    moves: Config
    before_digest: str
    after_digest: str
    before: Resources
    after: Resources
    before_figures: Figures | None = None
    """What a run on the CPU counted, in both maps at the same sizes; else none."""
    after_figures: Figures | None = None

    @property
    def one_program(self) -> bool:
        """Nothing that the device executes or reserves differs."""
        return self.before_digest == self.after_digest


class Growth(msgspec.Struct, frozen=True):
    """One resource of one configuration."""

    moves: Config
    resource: str
    """A field of `Resources`."""
    before: int
    after: int

    @property
    def amount(self) -> int:
        """How much more it is."""
        return self.after - self.before


class ResourceChange(msgspec.Struct, frozen=True):
    """One resource over all pairs of programs, equal pairs counted once."""

    resource: str
    compared: int
    grew: int
    shrank: int
    most: Growth | None
    """The largest growth."""
    least: Growth | None
    """The largest fall."""


def pairs(bridge: Bridge, told: Iterable[PairedJudgement]) -> list[ProgramPair]:
    """Return the configurations that passed in both maps, their programs known; only within one maker's devices."""
    if vendor(bridge.before) != vendor(bridge.after):
        return []
    found = []
    before, after = (judge.observations for judge in bridge.judges)
    for item in told:
        one, other = item.before, item.after
        passed = {one.outcome, other.outcome} <= set(COMPILED)
        if passed and one.digest and other.digest and one.resources and other.resources:
            moves = bridge.moves(item.config)
            ran, again = before.get(item.config), after.get(item.other)
            counted = (ran.figures, again.figures) if ran and again and _alike(ran, again) else (None, None)
            found.append(
                ProgramPair(item.config, moves, one.digest, other.digest, one.resources, other.resources, *counted)
            )
    return found


def _alike(one: Observation, other: Observation) -> bool:
    """Return whether both were executed at the same sizes, so that their counts can be compared."""
    return bool(one.executed and other.executed) and (one.check.sizes if one.check else ()) == (
        other.check.sizes if other.check else ()
    )


def distinct(pairs: Iterable[ProgramPair]) -> list[ProgramPair]:
    """Return one pair for each two programs, the one with the fewest moves."""
    found: dict[tuple[str, str], ProgramPair] = {}
    for pair in sorted(pairs, key=lambda pair: len(pair.moves)):
        found.setdefault((pair.before_digest, pair.after_digest), pair)
    return list(found.values())


def growth(pair: ProgramPair, resource: str) -> Growth | None:
    """Return one resource of both programs of a pair; None where it is not known of both."""
    one, other = getattr(pair.before, resource), getattr(pair.after, resource)
    return None if one is None or other is None else Growth(pair.moves, resource, one, other)


def resource_changes(pairs: Iterable[ProgramPair]) -> Iterator[ResourceChange]:
    """Yield every resource that is known of both sides of a pair."""
    programs = distinct(pairs)
    for name in Resources.__struct_fields__:
        told = [found for pair in programs if (found := growth(pair, name))]
        if not told:
            continue
        most, least = max(told, key=lambda g: g.amount), min(told, key=lambda g: g.amount)
        yield ResourceChange(
            name,
            len(told),
            sum(found.amount > 0 for found in told),
            sum(found.amount < 0 for found in told),
            most if most.amount > 0 else None,
            least if least.amount < 0 else None,
        )


def beyond(pair: ProgramPair, tolerance: Tolerance, maker: str) -> Iterator[Growth]:
    """Yield spills and registers of a pair that grew beyond the tolerance; code that begins to spill always did."""
    # NVIDIA tells spills in bytes of local memory: a register is four.
    floors = {"spills": tolerance.registers * (1 if maker == "AMD" else 4), "vgpr": tolerance.registers}
    for name, floor in floors.items():
        found = growth(pair, name)
        if found is None:
            continue
        begins = name == "spills" and found.before == 0 < found.after
        if begins or (found.amount > floor and found.after > found.before * (1 + tolerance.percent / 100)):
            yield found
