"""Rules of sameness: when values of a knob give the same program, corrected by the source and by the answers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import msgspec

from gluonmap.acquire import Learned
from gluonmap.model.candidate import Config, same
from gluonmap.model.joint_map import ValueClasses
from gluonmap.query import reduced_space
from gluonmap.query.reduced_space import ReducedSpace


@dataclass(frozen=True, slots=True)
class SamenessRules:
    """Corrections of the rules of sameness that were learned for one kernel."""

    baseline: Config
    stable: bool
    """Equal digests mean equal programs."""
    unread: Collection[str] = ()
    """Knobs that nothing reads, as the source shows."""

    def corrected(self, learned: Learned) -> Learned:
        """Return what was learned with all corrections made."""
        return self.without_contradicted(self.with_unread(learned))

    def with_unread(self, learned: Learned) -> Learned:
        """Return what was learned, with the unread knobs inert everywhere: the source shows it without comparisons."""
        idle = {item.knob for item in learned.inertness if item.uncompared} & set(self.unread)
        said = "is declared and never read, and changed nothing where it was compared"
        return msgspec.structs.replace(
            learned,
            inertness=tuple(
                msgspec.structs.replace(i, condition="", words=f"{i.knob} {said}") if i.knob in idle else i
                for i in learned.inertness
            ),
            value_classes=(
                *learned.value_classes,
                *(ValueClasses(name, (domain,)) for name, domain in learned.domains.items() if name in idle),
            ),
        )

    def without_contradicted(self, learned: Learned) -> Learned:
        """Return what was learned without the rules that would merge two configurations with different programs."""
        while (knobs := self.contradicted(learned)) is not None:
            said = (
                f"together with {' and '.join(sorted(knobs))} it changed a program, although no comparison shows when"
            )
            learned = msgspec.structs.replace(
                learned,
                inertness=tuple(
                    msgspec.structs.replace(i, condition="sometimes", relation=None, words=f"{i.knob}: {said}")
                    if i.knob in knobs
                    else i
                    for i in learned.inertness
                ),
                value_classes=tuple(c for c in learned.value_classes if c.knob not in knobs),
            )
        return learned

    def contradicted(self, learned: Learned) -> set[str] | None:
        """Return the knobs in which two asked configurations differ that the rules merge and whose programs differ."""
        reduced = self.reduced(learned)
        seen: dict[str, tuple[Config, str]] = {}
        for item in learned.asked:
            if item.answer.passed and item.answer.digest:
                form = repr(reduced.canonical(item.config))
                config, digest = seen.setdefault(form, (item.config, item.answer.digest))
                moved = {name for name, value in config.items() if not same(value, item.config[name])}
                if digest != item.answer.digest and moved:  # without a move it is one configuration, asked twice
                    return moved
        return None

    def reduced(self, learned: Learned) -> ReducedSpace:
        """Return the reduced space of what was learned; unstable code merges nothing."""
        relations = [item.relation for item in learned.constraints]
        merged = (learned.inertness, learned.value_classes) if self.stable else ((), ())
        return reduced_space.reduced_space(learned.domains, self.baseline, relations, *merged)
