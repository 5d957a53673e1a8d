"""`EXPORTERS`: every format of `gluonmap export`, declared once.

The command derives from it the choices and the help of --format, which options a format refuses, and what it writes;
tests compare it with README.md and docs/export.md. To add a format, write a module with a `render` function and add one
`Exporter` to the tuple below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gluonmap.model.candidate import Config
    from gluonmap.model.space_map import SpaceMap


class ExportRequest(NamedTuple):
    """A map, and the options that one file is rendered with."""

    space: SpaceMap
    limit: int | None = None
    """The largest number of configurations in the file."""
    names: Mapping[str, Any] = MappingProxyType({})
    """Parts of the file's name: the format's entry in the probe file's EXPORT."""
    winners: Mapping[int, Config] = MappingProxyType({})
    """Size M -> the launch that won the race at that size."""


class ExportedFile(NamedTuple):
    """A rendered file."""

    name: str
    """Default file name; it may contain folders."""
    text: str
    note: str = ""
    """A sentence for the user that the file itself cannot hold."""


def _no_note(request: ExportRequest) -> str:
    return ""


class Exporter(NamedTuple):
    """A format: one map becomes one file."""

    name: str
    """The value of --format, and the format's key in EXPORT."""
    description: str
    """The content of the file in one line, for --help and docs/export.md."""
    file_name: Callable[[ExportRequest], str]
    render: Callable[[ExportRequest], str]
    note: Callable[[ExportRequest], str] = _no_note
    takes_limit: bool = False
    """--limit: the file holds a list of configurations."""
    takes_races: bool = False
    """--race: the file holds one configuration per size M."""
    named_by_probe_file: bool = False
    """--probe-file: EXPORT of the kernel's probe file gives parts of the file's name."""

    def write(self, request: ExportRequest) -> ExportedFile:
        """Render a request.

        Raises:
            UsageError: the map lacks something that the format needs.
        """
        return ExportedFile(self.file_name(request), self.render(request), self.note(request))

    @property
    def options(self) -> tuple[str, ...]:
        """Options of the command that this format takes and others do not."""
        taken = {
            "--limit": self.takes_limit,
            "--race": self.takes_races,
            "--probe-file": self.named_by_probe_file,
        }
        return tuple(option for option, takes in taken.items() if takes)


def by_name(exporters: Iterable[Exporter]) -> dict[str, Exporter]:
    """Return the exporters by name, in their order.

    Raises:
        ValueError: a name is no word for a command line, or occurs twice; a description is not one line.
    """
    found: dict[str, Exporter] = {}
    for exporter in exporters:
        name, description = exporter.name, exporter.description
        if not name.replace("-", "").isalnum() or name != name.lower():
            raise ValueError(f"an exporter needs a name of lower-case letters, digits and hyphens, not {name!r}.")
        if name in found:
            raise ValueError(f"two exporters are named {name!r}.")
        if not description.strip() or len(description.splitlines()) != 1:
            raise ValueError(f"the exporter {name!r} needs a description of one line, not {description!r}.")
        found[name] = exporter
    return found


# The functions below import their format's module when they are called. The modules need numpy and msgspec, which take
# 160 ms to import, and `gluonmap --help` needs the names and descriptions alone.


def _python(request: ExportRequest) -> str:
    from gluonmap.export import python

    return python.render(request.space, request.limit)


def _triton_json(request: ExportRequest) -> str:
    from gluonmap.export import triton_json

    return triton_json.render(request.space, request.limit)


def _aiter(request: ExportRequest) -> str:
    from gluonmap.export import aiter

    return aiter.render(request.space, aiter.buckets(request.winners) if request.winners else None)


def _aiter_name(request: ExportRequest) -> str:
    from gluonmap.export import aiter

    return aiter.file_name(request.space, request.names)


def _vllm(request: ExportRequest) -> str:
    from gluonmap.export import vllm

    return vllm.render(request.space, request.names, request.winners or None)


def _vllm_name(request: ExportRequest) -> str:
    from gluonmap.export import vllm

    return vllm.file_name(request.space, request.names)


def _untuned(request: ExportRequest) -> str:
    from gluonmap.export.heading import untuned

    return "" if request.winners else untuned(request.space)


def _kernel_tuner(request: ExportRequest) -> str:
    from gluonmap.export import kernel_tuner

    return kernel_tuner.render(request.space)


def _prune(request: ExportRequest) -> str:
    from gluonmap.export import prune

    return prune.render(request.space, request.limit)


def _named(ending: str) -> Callable[[ExportRequest], str]:
    """Return a function that names a file after the map's kernel and target."""
    return lambda request: f"{request.space.kernel}_{request.space.target}_{ending}"


EXPORTERS = by_name(
    (
        Exporter(
            name="python",
            description="a Python module with CONFIGS, a list of triton.Config",
            file_name=_named("configs.py"),
            render=_python,
            takes_limit=True,
        ),
        Exporter(
            name="triton-json",
            description="JSON with the keywords of each triton.Config, as in Triton's .autotune.json",
            file_name=lambda request: f"{request.space.kernel}.{request.space.target}.configs.json",
            render=_triton_json,
            takes_limit=True,
        ),
        Exporter(
            name="aiter",
            description="a configuration file of aiter, one configuration per bucket of M",
            file_name=_aiter_name,
            render=_aiter,
            note=_untuned,
            takes_races=True,
            named_by_probe_file=True,
        ),
        Exporter(
            name="vllm",
            description="a configuration file of vLLM or SGLang, one configuration per number of tokens",
            file_name=_vllm_name,
            render=_vllm,
            note=_untuned,
            takes_races=True,
            named_by_probe_file=True,
        ),
        Exporter(
            name="kernel-tuner",
            description="a Python module with tune_params and restrictions for Kernel Tuner",
            file_name=_named("kernel_tuner.py"),
            render=_kernel_tuner,
        ),
        Exporter(
            name="prune",
            description="a Python module with early_config_prune, which needs nothing but the standard library",
            file_name=_named("prune.py"),
            render=_prune,
            takes_limit=True,
        ),
    )
)
"""Name -> exporter, in the order of --help."""
