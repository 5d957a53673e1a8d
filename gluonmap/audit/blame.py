"""The values that make an entry fail: the fewest that still fail when moved into an entry that passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap.audit.bound_entries import BoundEntry, KernelNames
from gluonmap.audit.compiles import AuditCompiles
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.reference_map import candidate_of
from gluonmap.audit.wording import named, shown
from gluonmap.model.candidate import Candidate, Value
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.verdict import Answer, Verdict, passed
from gluonmap.query.explain import minimal
from gluonmap.runner import journal
from gluonmap.spec.description import Description

COMPILES = 24
"""Most new compiles that the search for blame makes in one audit."""


@dataclass(slots=True)
class BlameFinder:
    """Search for the values that make entries of one audit fail."""

    compiles: AuditCompiles
    description: Description
    names: KernelNames
    left: int = COMPILES

    def with_blame(self, rows: Sequence[JudgedEntry]) -> list[JudgedEntry]:
        """Return the entries with the keys to blame filled in. Entries that fail alike share one search."""
        passing = [item for item in rows if item.verdict is Feasibility.FEASIBLE]
        known: dict[tuple[object, ...], list[tuple[dict[str, str], tuple[str, ...], str]]] = {}
        blamed: list[JudgedEntry] = []
        for item in rows:
            if not passing or item.verdict is not Feasibility.INFEASIBLE or item.basis != "compiled":
                blamed.append(item)
                continue
            alike = known.setdefault((item.outcome, item.how, item.reason, item.at), [])
            earlier = next((each for each in alike if each[0].items() <= _spelled(item.bound).items()), None)
            if earlier is None:
                base = min(passing, key=lambda other: len(_apart(other.bound, item.bound)))
                keys = self._smallest(base.bound, item)
                earlier = ({n: v for n, v in _spelled(item.bound).items() if n in keys}, keys, _words(item, base, keys))
                if keys:
                    alike.append(earlier)
            blamed.append(msgspec.structs.replace(item, blame=earlier[1], blamed=earlier[2]))
        return blamed

    def _smallest(self, base: BoundEntry, item: JudgedEntry) -> tuple[str, ...]:
        """Return the fewest keys found whose values fail alike; none if all are needed or the limit is reached."""
        apart = _apart(base, item.bound)
        alone = self._fail([[name] for name in apart], base, item)
        if True in alone:
            return (apart[alone.index(True)],)
        needed = minimal(apart, lambda names: len(names) == len(apart) or self._fail([names], base, item)[0])
        return tuple(needed) if len(needed) < len(apart) else ()

    def _fail(self, parts: Iterable[Sequence[str]], base: BoundEntry, item: JudgedEntry) -> list[bool]:
        """Return for each part whether it fails as the entry does; False for a part that is not compiled."""
        made = [candidate_of(self.description, _moved(base, item.bound, names), self.names) for names in parts]
        wanted: list[Candidate] = []
        for candidate in made:
            if isinstance(candidate, str):
                continue
            new = journal.key_of(candidate) not in self.compiles.answers
            if not new or self.left > 0:
                self.left -= new
                wanted.append(candidate)
        answers = self.compiles.ask(wanted, "parts of a failing entry")
        by_key = {journal.key_of(c): answer for c, answer in zip(wanted, answers, strict=True)}
        return [not isinstance(c, str) and _alike(by_key.get(journal.key_of(c)), item) for c in made]


def _alike(answer: Answer | None, item: JudgedEntry) -> bool:
    if not isinstance(answer, Verdict) or passed(answer) or answer.outcome.value != item.outcome:
        return False
    return (answer.reason.kind if answer.reason else "") == item.how


def _spelled(bound: BoundEntry) -> dict[str, str]:
    return {name: repr(value) for name, value in bound.moves.items()}


def _apart(base: BoundEntry, other: BoundEntry) -> list[str]:
    """Return the keys in which two entries differ; the keys that the second one sets come first."""
    one, two = _spelled(base), _spelled(other)
    names = [name for name in dict.fromkeys([*other.moves, *base.moves]) if one.get(name) != two.get(name)]
    return sorted(names, key=lambda name: name not in other.entry.written)


def _moved(base: BoundEntry, other: BoundEntry, names: Sequence[str]) -> BoundEntry:
    """Return the first entry with the second one's values for some keys."""
    moves: Mapping[str, Value] = {name: value for name, value in base.moves.items() if name not in names}
    return msgspec.structs.replace(
        base, moves={**moves, **{name: other.moves[name] for name in names if name in other.moves}}
    )


def _words(item: JudgedEntry, base: JudgedEntry, keys: Sequence[str]) -> str:
    if not keys:
        return ""
    values = [shown(name, item.bound.moves[name]) if name in item.bound.moves else f"no {name}" for name in keys]
    what = f"{values[0]} alone is" if len(keys) == 1 else f"{' and '.join(values)} together are"
    return f"{what} enough: {named([base.bound.entry])} passes, and with that it fails in the same way"
