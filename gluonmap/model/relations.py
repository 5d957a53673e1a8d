"""Terms and relations over the knobs of a configuration, as frozen data. What they mean is in `relation`."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.model.candidate import Value


class View(StrEnum):
    """How a knob enters a term, where it is not by its plain value."""

    PLAIN = ""
    BYTES = "bytes"
    """Size of the element type that the knob names."""
    POWER = "power"
    """The next power of two."""
    EVEN_PART = "even part"
    """The largest power of two that divides it."""


class Knob(msgspec.Struct, frozen=True, tag="knob", omit_defaults=True):
    """The value of a knob."""

    name: str
    view: View = View.PLAIN


class Number(msgspec.Struct, frozen=True, tag="number"):
    value: float | int


class Product(msgspec.Struct, frozen=True, tag="product"):
    parts: tuple[Term, ...]


class Quotient(msgspec.Struct, frozen=True, tag="quotient"):
    part: Term
    divisor: Term


class Sum(msgspec.Struct, frozen=True, tag="sum"):
    parts: tuple[Term, ...]


class Max(msgspec.Struct, frozen=True, tag="max"):
    parts: tuple[Term, ...]


class Min(msgspec.Struct, frozen=True, tag="min"):
    parts: tuple[Term, ...]


class RoundUp(msgspec.Struct, frozen=True, tag="round up"):
    """`part`, rounded up to a multiple of `multiple`."""

    part: Term
    multiple: int


class Remainder(msgspec.Struct, frozen=True, tag="remainder"):
    part: Term
    divisor: Term


Term = Knob | Number | Product | Quotient | Sum | Max | Min | RoundUp | Remainder
"""A number computed from a configuration."""


class Op(StrEnum):
    """A comparison, as it is printed."""

    AT_MOST = "<="
    AT_LEAST = ">="
    EQUAL = "="
    UNEQUAL = "!="


class Compare(msgspec.Struct, frozen=True, tag="compare"):
    """`left op right`, both numbers."""

    left: Term
    op: Op
    right: Term


class Member(msgspec.Struct, frozen=True, tag="member", omit_defaults=True):
    """The knob has one of these values (`inside`), or none of them."""

    knob: str
    values: tuple[Value, ...]
    inside: bool = True


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """The knob's value is at least, or at most, a number."""

    knob: str
    op: Op
    value: float | int


class AnyOf(msgspec.Struct, frozen=True, tag="any"):
    parts: tuple[Relation, ...]


class AllOf(msgspec.Struct, frozen=True, tag="all"):
    parts: tuple[Relation, ...]


class Nogood(msgspec.Struct, frozen=True, tag="nogood"):
    """Not all of these values together."""

    cells: tuple[tuple[str, Value], ...]


class Written(msgspec.Struct, frozen=True, tag="written"):
    """An expression in the language of `expression`, from the user or from the kernel's source."""

    text: str


Relation = Compare | Member | Bound | AnyOf | AllOf | Nogood | Written
"""What must hold of a configuration."""
