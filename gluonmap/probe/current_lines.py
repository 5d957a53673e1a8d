"""Lines of today's files for locations in functions, which comments and moves of a function do not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from gluonmap.model.inspection import Inspection
from gluonmap.model.verdict import Location
from gluonmap.source import code_lines, syntax

Lines = Callable[[Location], int | None]
"""Return the line in today's file of a location in a function; None: the function is unknown."""


def current_lines(inspection: Inspection, paths: Mapping[str, Path]) -> Lines:
    """Return a function from locations to lines of today's files; a file that is gone keeps the inspection's lines."""
    texts = {name: syntax.text_of(path) for name, path in paths.items() if path.is_file()}
    functions = {(f.name, f.file): f for f in inspection.functions}

    def line(location: Location) -> int | None:
        function = functions.get((location.function, location.file))
        if location.file in texts:
            found = code_lines.absolute_line(texts[location.file], location, function.source if function else "")
            if found is not None:
                return found
        if function is None:
            return None
        return function.first_line + code_lines.physical_line(function.source, location.line) - 1

    return line
