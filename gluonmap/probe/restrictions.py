"""Restrictions of the user and demands of the source, as expressions over knobs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gluonmap.constraints import expressions
from gluonmap.constraints.semantics import holds
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.inspection import LiteralRule
from gluonmap.model.relations import Written
from gluonmap.spec.description import Description


class Restrictions:
    """Restrictions that the baseline keeps to."""

    def __init__(self, description: Description, texts: Sequence[str]) -> None:
        """Check the restrictions and rewrite them over knobs.

        Raises:
            UsageError: a restriction has no value, or the baseline breaks it.
        """
        for text in texts:
            _check(description, text)
        self.texts = tuple(texts)
        """Restrictions as the user wrote them."""
        self.over_knobs = tuple(over_knobs(description, text) for text in texts)

    def allow(self, config: Config) -> bool:
        """Return whether a configuration of all knobs keeps to all restrictions."""
        return all(holds(Written(text), config) for text in self.over_knobs)


def _check(description: Description, text: str) -> None:
    known = description.namespace({})
    for name in sorted(expressions.names_in(text)):
        if name not in known:
            raise UnknownKnob(f"the restriction {text!r}", name, known)
    if not expressions.evaluate(text, known):
        raise UsageError(f"the baseline breaks the restriction {text!r}; choose another one with --set NAME=VALUE.")


def demands_over_knobs(description: Description, demands: Sequence[LiteralRule]) -> Iterator[LiteralRule]:
    """Yield each demand once, as an expression over knobs alone; demands that read no knob are left out."""
    seen = set()
    for demand in demands:
        text = over_knobs(description, demand.expression)
        if expressions.names_in(text) and text not in seen:
            seen.add(text)
            yield LiteralRule(demand.text, text, demand.knobs, demand.location)


def over_knobs(description: Description, text: str) -> str:
    """Return an expression with each name that is no knob replaced by its value, or by what it is derived from."""
    numbers = {n: v for n, v in description.args.items() if not isinstance(v, str)}
    values = {**numbers, **description.shape, **description.fixed}
    derived = {n: t for n, t in description.derive.items() if n not in description.knobs}
    values = {n: v for n, v in values.items() if n not in derived and n not in description.knobs}
    return expressions.substituted(text, values, derived)
