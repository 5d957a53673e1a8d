"""Lists of names in sentences."""

from __future__ import annotations

from collections.abc import Iterable


def listed(items: Iterable[str], word: str = "and") -> str:
    """Return "a", "a and b" or "a, b and c"; "" of no items."""
    *head, last = list(items) or [""]
    return f"{', '.join(head)} {word} {last}" if head else last


def listed_briefly(items: Iterable[str], most: int = 6, word: str = "and") -> str:
    """Return the items as `listed` does, but if there are more than `most`: "a, b and 4 more"."""
    names = list(items)
    if len(names) > most:  # the count takes the place of an item, so it is never "1 more"
        names = [*names[: most - 1], f"{len(names) - most + 1} more"]
    return listed(names, word)
