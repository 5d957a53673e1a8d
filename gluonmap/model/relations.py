"""Terms and relations over the knobs of a configuration, as frozen data. `constraints.semantics` has their meaning."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gluonmap.model.candidate import Value


class View(StrEnum):
    """The number that a knob contributes to a term."""

    PLAIN = ""
    BYTES = "bytes"
    """Size of the element type that the knob names."""
    POWER = "power"
    """The next power of two."""
    EVEN_PART = "even part"
    """The largest power of two that divides it."""


class KnobTerm(msgspec.Struct, frozen=True, tag="knob", omit_defaults=True):
    """The value of a knob."""

    name: str
    view: View = View.PLAIN


class Number(msgspec.Struct, frozen=True, tag="number"):
    """A constant."""

    value: float | int


class Product(msgspec.Struct, frozen=True, tag="product"):
    """The product of its parts; 1 without parts."""

    parts: tuple[Term, ...]


class Quotient(msgspec.Struct, frozen=True, tag="quotient"):
    """`part` divided by `divisor`."""

    part: Term
    divisor: Term


class Sum(msgspec.Struct, frozen=True, tag="sum"):
    """The sum of its parts."""

    parts: tuple[Term, ...]


class Max(msgspec.Struct, frozen=True, tag="max"):
    """The largest of its parts."""

    parts: tuple[Term, ...]


class Min(msgspec.Struct, frozen=True, tag="min"):
    """The smallest of its parts."""

    parts: tuple[Term, ...]


class RoundUp(msgspec.Struct, frozen=True, tag="round up"):
    """`part`, rounded up to a multiple of `multiple`."""

    part: Term
    multiple: int


class Remainder(msgspec.Struct, frozen=True, tag="remainder"):
    """The remainder of `part` divided by `divisor`."""

    part: Term
    divisor: Term


Term = KnobTerm | Number | Product | Quotient | Sum | Max | Min | RoundUp | Remainder
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
    """The knob has one of these values (`inside`), or none of them (not `inside`)."""

    knob: str
    values: tuple[Value, ...]
    inside: bool = True


class Bound(msgspec.Struct, frozen=True, tag="bound"):
    """The knob's value is at least, or at most, a number."""

    knob: str
    op: Op
    value: float | int


class AnyOf(msgspec.Struct, frozen=True, tag="any"):
    """At least one of its parts holds."""

    parts: tuple[Relation, ...]


class AllOf(msgspec.Struct, frozen=True, tag="all"):
    """All of its parts hold."""

    parts: tuple[Relation, ...]


class Nogood(msgspec.Struct, frozen=True, tag="nogood"):
    """The configuration does not have all of these values together."""

    cells: tuple[tuple[str, Value], ...]


class Written(msgspec.Struct, frozen=True, tag="written"):
    """An expression in the language of `constraints.expressions`, from the user or from the kernel's source."""

    text: str


Relation = Compare | Member | Bound | AnyOf | AllOf | Nogood | Written
"""A condition on a configuration."""
