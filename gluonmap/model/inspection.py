"""The report of the isolated import of a kernel file: parameters, sources, autotune configurations."""

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
    """A `@triton.heuristics` function computes its value, so it is never a knob."""


class FunctionSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A jit function that the kernel reaches, or the kernel itself."""

    name: str
    file: str
    """Path of the file, relative to the project if possible, so that it is the same on every machine."""
    first_line: int
    """Line of the file that holds the first line of `source`."""
    source: str
    """Text of the file from the first decorator or `def` on, dedented."""
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
    """The report of the isolated first import of a kernel file."""

    kernel: str
    """Name in its module under which the kernel was found, with all its decorators."""
    function: str
    """Name of the decorated function."""
    kernels: tuple[str, ...]
    """Names of all jit functions that the file defines, in order."""
    entries: tuple[str, ...]
    """Names of the jit functions that no other jit function of the file calls."""
    gluon: bool
    parameters: tuple[Parameter, ...]
    functions: tuple[FunctionSource, ...]
    """The kernel first, then the functions that it reaches."""
    files: tuple[SourceFile, ...]
    autotune: tuple[Config, ...] = ()
    """The kernel's own `@triton.autotune` configurations, options included."""
    quiet: bool = True
    """The import left no threads and children and printed nothing, so a server may load the file."""
    notes: tuple[str, ...] = ()
    options: dict[str, Value] = {}
    """Option of the back end -> its default; None for a default that is no plain value."""


class LiteralRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A demand on the configuration that a layout written as a literal makes, read from the source."""

    text: str
    """"basis 128 needs BLOCK_SIZE_N > 128"."""
    expression: str
    """Expression over the configuration, in the language of `constraints.expressions`: true if the demand is met."""
    knobs: tuple[str, ...]
    location: Location
