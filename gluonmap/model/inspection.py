"""What the isolated import of a kernel file reports: parameters, sources, autotune configurations."""

from __future__ import annotations

import msgspec

from gluonmap.model.candidate import Config, Value
from gluonmap.model.verdict import Location


class Parameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """One argument in the kernel's signature."""

    name: str
    constexpr: bool
    default: Value = None
    has_default: bool = False
    annotation: str = ""
    heuristic: bool = False
    """Its value is computed by a `@triton.heuristics` function: never a knob."""


class FunctionSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A jit function that the kernel reaches: the kernel itself comes first."""

    name: str
    file: str
    """As far as possible relative to the project; the same on every machine."""
    first_line: int
    """Line of the file that holds the first line of `source`."""
    source: str
    """From the first decorator or `def` on, dedented, as it stands in the file."""
    calls: dict[str, int] = {}
    """Dotted name as written in this source -> index of the jit function it resolves to."""
    constants: dict[str, Value] = {}
    """Dotted name as written -> value, for module constants that are plain values or lists of them (as JSON text)."""


class SourceFile(msgspec.Struct, frozen=True):
    """A file that was read when the kernel was imported."""

    path: str
    ast: str
    """Hash of its syntax tree: comments, blank lines and the file's place do not change it."""


class Inspection(msgspec.Struct, frozen=True):
    """What the isolated first import of a kernel file told."""

    kernel: str
    """The name in its module under which the kernel was found: with all its decorators."""
    function: str
    """The function's own name."""
    kernels: tuple[str, ...]
    """All jit functions defined in the file, in order."""
    entries: tuple[str, ...]
    """Those that no other jit function of the file calls."""
    gluon: bool
    parameters: tuple[Parameter, ...]
    functions: tuple[FunctionSource, ...]
    files: tuple[SourceFile, ...]
    autotune: tuple[Config, ...] = ()
    """The kernel's own `@triton.autotune` configurations, options included."""
    quiet: bool = True
    """The import ended without threads, children or output: a server may load it."""
    notes: tuple[str, ...] = ()
    options: dict[str, Value] = {}
    """The back end's options and their defaults; a default that is no plain value is None."""


class LiteralRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a layout written as a literal demands of the configuration, read from the source."""

    text: str
    """"basis 128 needs BLOCK_SIZE_N > 128"."""
    expression: str
    """True where the demand is met, in the language of `expression` over the configuration."""
    knobs: tuple[str, ...]
    location: Location
