"""Functions of a kernel as an inspection holds them, from their text."""

from __future__ import annotations

from gluonmap.model.inspection import FunctionSource


def linked_functions(*sources: str) -> list[FunctionSource]:
    """The sources as functions of one file, each of which can call all the others by name."""
    names = [source.split("def ", 1)[1].split("(", 1)[0] for source in sources]
    calls = {name: index for index, name in enumerate(names)}
    return [FunctionSource(name, "kernel.py", 1, source, calls) for name, source in zip(names, sources, strict=True)]
