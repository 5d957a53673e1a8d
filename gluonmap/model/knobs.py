"""The classes of knobs and the effects of their values."""

from __future__ import annotations

from enum import StrEnum


class Effect(StrEnum):
    """The effect of a value, compared with the baseline's."""

    BASELINE = "baseline"
    INERT = "inert"
    LIVE = "live"
    LIVE_HOST = "live (host)"
    ABORTING = "aborting"
    CHANGES_RESULT = "changes the result"
    """The numbers are not the baseline's, and no reference says which are right: the value is part of the problem."""
    UNKNOWN = "unknown"


class KnobClass(StrEnum):
    """The worth of a knob to a tuner, from its values moved one at a time."""

    PINNED = "pinned"
    BOUNDED = "bounded"
    INERT = "inert"
    LIVE = "live"
    UNKNOWN = "unknown"


class KnobKind(StrEnum):
    """The place where a knob is set: the kernel's signature, an option of the compiler, or host code."""

    CONSTEXPR = "constexpr"
    OPTION = "option"
    CONSTEXPR_AND_OPTION = "constexpr and option"
    HOST = "host"
