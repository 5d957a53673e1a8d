"""What an exported file says of itself, and what makes text of a map safe to stand in code."""

from __future__ import annotations

from gluonmap.handoff.launches import probe_command
from gluonmap.handoff.spelled import PREFIX
from gluonmap.model.candidate import Value
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Constraint
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.space_map import SpaceMap

UNTIMED = "Every configuration was compiled and passed. None was timed: nothing here is tuned."
PREDICTED = (
    "What the rules allow is predicted to pass, as far as the map knows. Nothing was timed: nothing here is tuned."
)


def heading(space: SpaceMap, what: str, handed: int | None = None) -> list[str]:
    """Return lines that say what a file holds: kernel, target, the Triton that it holds for, the map's sizes."""
    lines = [
        f"{what} {space.kernel} ({space.file}) on {space.target}.",
        f"From a map that was made with Triton {space.triton}; it holds for no other target and no other Triton.",
        sizes(space) + ("" if handed is None else f"; {handed:,} here") + ".",
    ]
    return [one_line(line) for line in lines]


def sizes(space: SpaceMap) -> str:
    """How much of the signature is left, in words."""
    if space.joint is None:
        return "One knob at a time was asked for, so what knobs demand of each other is not known"
    known = space.joint.sizes
    feasible = "not counted" if known.feasible is None else f"{known.feasible:,} feasible"
    programs = "programs not counted" if known.programs is None else f"{known.programs:,} distinct programs"
    programs = f"at most {programs}" if space.joint.at_most else programs
    return f"{known.signature:,} configurations, {feasible}, {programs}"


def evidence(constraint: Constraint) -> str:
    """What a constraint says and what it rests on, as one line: its words, standing, counts and the kernel's line."""
    parts = [f"{constraint.failed:,} failed"] if constraint.failed else []
    parts += [f"{constraint.passed:,} passed"] if constraint.passed else []
    parts += [constraint.line] if constraint.line else []
    parts += [constraint.reason] if constraint.reason else []
    parts += [] if constraint.confirmed else ["no failure confirms it"]
    told = f"{constraint.standing}: {constraint.words}"
    return one_line(f"{told} ({'; '.join(parts)})" if parts else told)


def one_line(text: str) -> str:
    """The text without line breaks and control characters: it cannot leave the comment that it stands in."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def check_names(space: SpaceMap) -> None:
    """Refuse a map whose knobs could not be names in code.

    Raises:
        UsageError: such a name.
    """
    for name in {**space.baseline, **space.recipe.fixed, **space.recipe.derive}:
        if not name.isidentifier():
            raise UsageError(f"the map of {space.kernel!r} has a knob {name!r}, which is no Python name.")


def literal(value: Value) -> str:
    """A plain value as Python writes it."""
    return f"float({str(value)!r})" if isinstance(value, float) and repr(value)[-1] in "fn" else repr(value)


def is_spelled(value: Value) -> bool:
    """Whether the map can only spell the value, "py:gl.float16"."""
    return isinstance(value, str) and value.startswith(PREFIX)


def refuse_spelled(space: SpaceMap, values: dict[str, Value], instead: str) -> None:
    """Refuse values that a file of this kind cannot hold.

    Raises:
        UsageError: such a value, with what to use in its place.
    """
    for name, value in values.items():
        if is_spelled(value):
            raise UsageError(f"the map of {space.kernel!r} spells {name} = {value!r}, no plain value: {instead}")


def launch_defaults(space: SpaceMap) -> dict[str, object]:
    """The compiler's options where a launch names none, as the Triton that is installed here declares them.

    Raises:
        UsageError: there is no Triton here.
    """
    from gluonmap.handoff.conversion import default_options

    try:
        return default_options(space.target)
    except ImportError as error:
        raise UsageError(
            f"the defaults of {space.target}'s compiler stand in Triton, which is not installed here: "
            "pip install 'gluonmap[compile]'"
        ) from error


def baseline_launch(space: SpaceMap) -> dict[str, Value]:
    """The baseline's knobs and the options that the map fixes, host knobs too, derived parameters not.

    Raises:
        UsageError: the baseline does not pass.
    """
    from gluonmap.handoff.launches import options_of

    if space.outcome not in COMPILED:
        raise UsageError(
            f"the baseline of {space.kernel!r} on {space.target} is {space.outcome}, so the map has nothing to write "
            f"here. Start from one that compiles:  {probe_command(space, '--set NAME=VALUE')}"
        )
    options = options_of(space.target)
    return {**space.baseline, **{name: value for name, value in space.recipe.fixed.items() if name in options}}
