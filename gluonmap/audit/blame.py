"""Which values of a failing entry are to blame: the fewest that fail too, moved into an entry that passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gluonmap.audit.bound_entries import Bound, Names
from gluonmap.audit.compiles import Asking
from gluonmap.audit.entry_findings import Told, named, shown
from gluonmap.audit.reference_map import candidate_of
from gluonmap.model.candidate import Candidate, Value
from gluonmap.model.outcomes import Feasibility
from gluonmap.model.verdict import Answer, Verdict, passed
from gluonmap.query.explain import minimal
from gluonmap.runner import journal
from gluonmap.spec.description import Description

COMPILES = 24
"""New ones at most in one audit."""


@dataclass(slots=True)
class Blaming:
    """Looks for what is to blame among the entries of one audit."""

    asking: Asking
    description: Description
    names: Names
    left: int = COMPILES

    def blamed(self, rows: Sequence[Told]) -> list[Told]:
        """The same, those that failed now with the keys to blame; of entries that fail alike one is looked into."""
        passing = [item for item in rows if item.verdict is Feasibility.FEASIBLE]
        known: dict[tuple[object, ...], list[tuple[dict[str, str], tuple[str, ...], str]]] = {}
        found: list[Told] = []
        for item in rows:
            if not passing or item.verdict is not Feasibility.INFEASIBLE or item.basis != "compiled":
                found.append(item)
                continue
            alike = known.setdefault((item.outcome, item.how, item.reason, item.at), [])
            earlier = next((each for each in alike if each[0].items() <= _spelled(item.bound).items()), None)
            if earlier is None:
                base = min(passing, key=lambda other: len(_apart(other.bound, item.bound)))
                keys = self._smallest(base.bound, item)
                earlier = ({n: v for n, v in _spelled(item.bound).items() if n in keys}, keys, _words(item, base, keys))
                if keys:
                    alike.append(earlier)
            found.append(msgspec.structs.replace(item, blame=earlier[1], blamed=earlier[2]))
        return found

    def _smallest(self, base: Bound, item: Told) -> tuple[str, ...]:
        """The fewest keys found whose values fail as the entry does; none: they all are needed, or the limit is met."""
        apart = _apart(base, item.bound)
        alone = self._fail([[name] for name in apart], base, item)
        if True in alone:
            return (apart[alone.index(True)],)
        found = minimal(apart, lambda names: len(names) == len(apart) or self._fail([names], base, item)[0])
        return tuple(found) if len(found) < len(apart) else ()

    def _fail(self, parts: Iterable[Sequence[str]], base: Bound, item: Told) -> list[bool]:
        """Whether each part fails as the entry does. What is not asked, or has no answer, does not."""
        made = [candidate_of(self.description, _moved(base, item.bound, names), self.names) for names in parts]
        wanted: list[Candidate] = []
        for candidate in made:
            if isinstance(candidate, str):
                continue
            new = journal.key_of(candidate) not in self.asking.answers
            if not new or self.left > 0:
                self.left -= new
                wanted.append(candidate)
        answers = self.asking.ask(wanted, "parts of a failing entry")
        told = {journal.key_of(c): answer for c, answer in zip(wanted, answers, strict=True)}
        return [not isinstance(c, str) and _alike(told.get(journal.key_of(c)), item) for c in made]


def _alike(answer: Answer | None, item: Told) -> bool:
    if not isinstance(answer, Verdict) or passed(answer) or answer.outcome.value != item.outcome:
        return False
    return (answer.reason.kind if answer.reason else "") == item.how


def _spelled(bound: Bound) -> dict[str, str]:
    return {name: repr(value) for name, value in bound.moves.items()}


def _apart(base: Bound, other: Bound) -> list[str]:
    """The keys in which two entries differ, those that the second one says first."""
    one, two = _spelled(base), _spelled(other)
    names = [name for name in dict.fromkeys([*other.moves, *base.moves]) if one.get(name) != two.get(name)]
    return sorted(names, key=lambda name: name not in other.entry.said)


def _moved(base: Bound, other: Bound, names: Sequence[str]) -> Bound:
    """The first entry with the second one's values of some keys."""
    moves: Mapping[str, Value] = {name: value for name, value in base.moves.items() if name not in names}
    return msgspec.structs.replace(
        base, moves={**moves, **{name: other.moves[name] for name in names if name in other.moves}}
    )


def _words(item: Told, base: Told, keys: Sequence[str]) -> str:
    if not keys:
        return ""
    values = [shown(name, item.bound.moves[name]) if name in item.bound.moves else f"no {name}" for name in keys]
    what = f"{values[0]} alone is" if len(keys) == 1 else f"{' and '.join(values)} together are"
    return f"{what} enough: {named([base.bound.entry])} passes, and with that it fails in the same way"
