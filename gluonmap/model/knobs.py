"""How knobs and their values are classified."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """What a value does against the baseline."""

    BASELINE = "baseline"
    INERT = "inert"
    LIVE = "live"
    LIVE_HOST = "live (host)"
    ABORTING = "aborting"
    CHANGES_RESULT = "changes the result"
    """Other numbers than the baseline's, where no reference says which are right: part of the problem."""
    UNKNOWN = "unknown"


class KnobClass(StrEnum):
    """What a knob is worth to a tuner, from its values moved one at a time."""

    PINNED = "pinned"
    BOUNDED = "bounded"
    INERT = "inert"
    LIVE = "live"
    UNKNOWN = "unknown"


class KnobKind(StrEnum):
    """Where a knob is turned: in the kernel's signature, as an option of the compiler, or in host code."""

    CONSTEXPR = "constexpr"
    OPTION = "option"
    CONSTEXPR_AND_OPTION = "constexpr and option"
    HOST = "host"
