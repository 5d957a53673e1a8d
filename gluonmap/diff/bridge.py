"""Two maps, and the translation of configurations between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gluonmap.model.candidate import Config, same
from gluonmap.model.space_map import SpaceMap
from gluonmap.query.feasibility import Judge, Judgement
from gluonmap.query.observations import ConfigKey, config_key


@dataclass(frozen=True, slots=True)
class PairedJudgement:
    """The judgements of both maps on one configuration."""

    config: Config
    """The configuration with the first map's knobs."""
    other: Config
    """The same configuration with the second map's knobs."""
    before: Judgement
    after: Judgement


class Bridge:
    """Translation of configurations between two maps. A knob that one map alone turns is held at one value."""

    def __init__(self, before: SpaceMap, after: SpaceMap) -> None:
        self.before, self.after = before, after
        self.judges = Judge(before), Judge(after)
        self.shared = tuple(n for n in before.baseline if n in after.baseline)
        self.held: Config = _held(before, after) | _held(after, before)
        """Knob of one map alone -> its fixed value in the other map, else the baseline's value in its own map."""
        self.one_baseline = all(same(before.baseline[n], after.baseline[n]) for n in self.shared)

    def to_after(self, config: Config) -> Config | None:
        """Return a configuration of the first map as one of the second; None if it moves a held knob."""
        return self._translated(config, self.after.baseline)

    def to_before(self, config: Config) -> Config | None:
        """Return a configuration of the second map as one of the first; None if it moves a held knob."""
        return self._translated(config, self.before.baseline)

    def moves(self, config: Config) -> Config:
        """Return the moves of a first map's configuration from the baseline, or from the value of a held knob."""
        return {n: v for n, v in config.items() if not same(v, self.held.get(n, self.before.baseline[n]))}

    def paired_judgements(self) -> list[PairedJudgement]:
        """Return the judgements of both maps on every configuration that one of them was asked."""
        before, after = self.judges
        asked = [(item.config, self.to_after(item.config)) for item in before.observations]
        back = ((self.to_before(item.config), item.config) for item in after.observations)
        asked += [(config, other) for config, other in back if config is not None]
        both: dict[ConfigKey, tuple[Config, Config]] = {}
        for config, other in asked:
            if other is not None:
                both.setdefault(config_key(config), (config, other))
        return [PairedJudgement(config, other, before(config), after(other)) for config, other in both.values()]

    def _translated(self, config: Config, names: Iterable[str]) -> Config | None:
        if any(name in self.held and not same(value, self.held[name]) for name, value in config.items()):
            return None
        return {name: self.held[name] if name in self.held else config[name] for name in names}


def _held(space: SpaceMap, other: SpaceMap) -> Config:
    """Return the knobs that only `space` turns, each with the value that the comparison holds it at."""
    return {n: other.recipe.fixed.get(n, v) for n, v in space.baseline.items() if n not in other.baseline}
