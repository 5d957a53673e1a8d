"""Pages on disk: one next to each map, or a folder of them with an index of kernels × targets × Triton versions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from gluonmap.model import codec, targets
from gluonmap.model.errors import UsageError
from gluonmap.model.race_record import RaceRecord
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.wording import listed
from gluonmap.report.html import knob_table, map_page, space_sizes, templating
from gluonmap.report.knobs import class_counts
from gluonmap.report.map_header import alias_of
from gluonmap.report.marks import Mark, baseline_compiled, baseline_mark
from gluonmap.report.plain_text import plural
from gluonmap.report.sentences import failed_phrase, map_sentence

INDEX = "index.html"


def write_beside(map_file: Path, space: SpaceMap) -> Path:
    """Write the map's page, with the races that lie next to the map, next to it; return the page's path.

    Raises:
        StorageFault: it cannot be written.
    """
    path = map_file.with_suffix(".html")
    codec.write(path, _page(map_file, space))
    return path


def write_site(folder: Path, maps: Sequence[tuple[Path, SpaceMap]]) -> Path:
    """Write a page for every map and the index over them into a folder, and return the index's path.

    The pages lie below the folder as the maps do below the folder that holds them all.

    Raises:
        StorageFault: a page cannot be written.
    """
    unique = {path.resolve(): (path, space) for path, space in maps}
    root = Path(os.path.commonpath([path.parent for path in unique]))
    entries = []
    for path, (_, space) in unique.items():
        below = PurePosixPath(path.relative_to(root).with_suffix(".html").as_posix())
        if str(below) == INDEX:
            below = below.with_name("index.map.html")
        home = "../" * (len(below.parts) - 1) + INDEX
        codec.write(folder / below, _page(path, space, home))
        entries.append((str(below), space))
    codec.write(folder / INDEX, index(entries))
    return folder / INDEX


def _page(map_file: Path, space: SpaceMap, home: str = "") -> bytes:
    races, warnings = races_beside(map_file, space)
    return map_page.render(space, races, home=home, warnings=warnings)


def races_beside(map_file: Path, space: SpaceMap) -> tuple[list[RaceRecord], list[str]]:
    """Return the records of the map's races that lie next to it, by name, and warnings about unreadable ones."""
    records, wrong = [], []
    prefix = f"{map_file.stem}."
    for path in sorted(map_file.parent.glob("*.race.json")):
        if not path.name.startswith(prefix):
            continue
        try:
            record = codec.read_race(path)
        except UsageError as error:
            wrong.append(f"A race is left out: {str(error).replace(str(path), path.name)}")
            continue
        if (record.kernel, record.target) == (space.kernel, space.target):
            records.append(record)
    return records, wrong


# --- the index -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A map in the index."""

    href: str
    mark: Mark
    tone: str
    sentence: str
    classes: tuple[tuple[str, int], ...]
    """Classes of the map's knobs, and the number of knobs in each."""
    text: str
    """Text of the link: the sizes of the space, or the failure of the baseline."""
    failed: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A row of the index: one kernel under one version of Triton."""

    kernel: str
    file: str
    triton: str
    cells: tuple[tuple[IndexEntry, ...], ...]
    """The maps of each target."""


def index(entries: Sequence[tuple[str, SpaceMap]]) -> bytes:
    """Return the index over maps, each given with its page's path: kernels and Triton versions down, targets across."""
    known = [target.name for target in targets.TARGETS]
    names = sorted(
        {space.target for _, space in entries}, key=lambda n: (known.index(n) if n in known else len(known), n)
    )
    found: dict[tuple[str, str, str], dict[str, list[IndexEntry]]] = {}
    for href, space in sorted(entries, key=lambda item: (item[1].file, item[1].kernel, item[1].triton, item[0])):
        columns = found.setdefault((space.file, space.kernel, space.triton), {name: [] for name in names})
        columns[space.target].append(_entry(href, space))
    lines = [
        IndexRow(kernel, file, triton, tuple(tuple(columns[name]) for name in names))
        for (file, kernel, triton), columns in found.items()
    ]
    heads = [(name, alias_of(name)) for name in names]
    kernels = len({(line.file, line.kernel) for line in lines})
    summary = ", ".join(
        [
            plural(len(entries), "map"),
            plural(kernels, "kernel"),
            plural(len(names), "target"),
            f"Triton {listed(dict.fromkeys(sorted(line.triton for line in lines)))}",
        ]
    )
    return templating.render_template(
        "index.html.jinja", heads=heads, lines=lines, summary=summary, sections=[], home=""
    )


def _entry(href: str, space: SpaceMap) -> IndexEntry:
    mark = baseline_mark(space)
    counted = tuple((str(each), count) for each, count in class_counts(space).items() if count)
    failed = not baseline_compiled(space)
    notes = []
    if space.stable is False:
        notes.append("unstable code")
    if space.joint is None and space.knobs:
        notes.append("one knob at a time")
    if space.unanswered:
        notes.append(f"{space.unanswered:,} not asked")
    text = f"the baseline {failed_phrase(space)}" if failed else _left(space)
    return IndexEntry(href, mark, knob_table.TONES[mark.word], map_sentence(space), counted, text, failed, tuple(notes))


def _left(space: SpaceMap) -> str:
    """Return "216,000 configurations → 14,400 feasible → at most 160 programs", as far as it was counted."""
    counted = {name: number for name, number, _ in space_sizes.counts(space)}
    found = [plural(counted["signature"] or 0, "configuration")]
    if (feasible := counted.get("feasible")) is not None:
        found.append(f"{feasible:,} feasible")
    if (programs := counted.get("programs")) is not None:
        at_most = "at most " if space.joint and space.joint.at_most else ""
        found.append(at_most + plural(programs, "program"))
    return " → ".join(found)
