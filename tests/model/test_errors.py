"""The error tree of the docstring is that of the classes."""

from __future__ import annotations

import importlib
import pkgutil

import gluonmap
from gluonmap.model import errors
from gluonmap.model.errors import GluonmapError


def tree(kind: type[GluonmapError], depth: int = 0) -> list[str]:
    """Return a line for the class, and below it those of its subclasses by name."""
    line = f"{'  ' * depth}{kind.__name__} exit {kind.exit_code}"
    below = sorted(kind.__subclasses__(), key=lambda each: each.__name__)
    return [
        line,
        *(text for each in below if each.__module__.startswith("gluonmap.") for text in tree(each, depth + 1)),
    ]


def test_the_drawn_tree_is_that_of_all_modules() -> None:
    for module in pkgutil.walk_packages(gluonmap.__path__, "gluonmap."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    drawn = [line for line in (errors.__doc__ or "").splitlines() if " exit " in line]
    indents = [len(line) - len(line.lstrip()) for line in drawn]
    assert [" " * n + " ".join(line.split()) for n, line in zip(indents, drawn, strict=True)] == tree(GluonmapError)
