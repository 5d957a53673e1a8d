"""Sentences at the top of exported files, and texts of a map made safe for code."""

from __future__ import annotations

from gluonmap.handoff.conversion import default_options
from gluonmap.handoff.launches import options_of, probe_command
from gluonmap.handoff.python_values import PREFIX
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
    """Return lines about a file: kernel, target, the Triton that the map was made with, the sizes of the space.

    `handed`: number of configurations in the file.
    """
    lines = [
        f"{what} {space.kernel} ({space.file}) on {space.target}.",
        f"From a map that was made with Triton {space.triton}; it holds for no other target and no other Triton.",
        sizes(space) + ("" if handed is None else f"; {handed:,} here") + ".",
    ]
    return [one_line(line) for line in lines]


def untuned(space: SpaceMap) -> str:
    """Return a sentence for files that hold the baseline only: nobody has timed it."""
    return one_line(
        f"Not tuned: the baseline of {space.kernel} on {space.target}, compiled and passed with Triton {space.triton}, "
        "never timed."
    )


def sizes(space: SpaceMap) -> str:
    """Return how many configurations of the signature are feasible and distinct, in words."""
    if space.joint is None:
        return "One knob at a time was asked for, so what knobs demand of each other is not known"
    known = space.joint.sizes
    feasible = "not counted" if known.feasible is None else f"{known.feasible:,} feasible"
    programs = "programs not counted" if known.programs is None else f"{known.programs:,} distinct programs"
    programs = f"at most {programs}" if space.joint.at_most else programs
    return f"{known.signature:,} configurations, {feasible}, {programs}"


def evidence(constraint: Constraint) -> str:
    """Return one line about a constraint: its standing, words, counts, the kernel's line and the reason."""
    parts = [f"{constraint.failed:,} failed"] if constraint.failed else []
    parts += [f"{constraint.passed:,} passed"] if constraint.passed else []
    parts += [constraint.line] if constraint.line else []
    parts += [constraint.reason] if constraint.reason else []
    parts += [] if constraint.confirmed else ["no failure confirms it"]
    claim = f"{constraint.standing}: {constraint.words}"
    return one_line(f"{claim} ({'; '.join(parts)})" if parts else claim)


def one_line(text: str) -> str:
    """Return the text without line breaks and control characters, so that it cannot end the comment around it."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def check_names(space: SpaceMap) -> None:
    """Check that the names of a map are Python names, because exported code uses them as such.

    Raises:
        UsageError: one is not.
    """
    for name in {**space.baseline, **space.recipe.fixed, **space.recipe.derive}:
        if not name.isidentifier():
            raise UsageError(f"the map of {space.kernel!r} has a knob {name!r}, which is no Python name.")


def literal(value: Value) -> str:
    """Return a plain value as Python text; inf and nan as a call of float."""
    return f"float({str(value)!r})" if isinstance(value, float) and repr(value)[-1] in "fn" else repr(value)


def is_spelled(value: Value) -> bool:
    """Return whether the value is Python text that names an object, such as "py:gl.float16"."""
    return isinstance(value, str) and value.startswith(PREFIX)


def refuse_spelled(space: SpaceMap, values: dict[str, Value], instead: str) -> None:
    """Check that all values are plain, because the file cannot hold an object.

    Raises:
        UsageError: one is not; `instead` says what to use in its place.
    """
    for name, value in values.items():
        if is_spelled(value):
            raise UsageError(f"the map of {space.kernel!r} spells {name} = {value!r}, no plain value: {instead}")


def launch_defaults(space: SpaceMap) -> dict[str, object]:
    """Return the compiler's defaults of launch options, as the installed Triton declares them.

    Raises:
        UsageError: Triton is not installed.
    """
    try:
        return default_options(space.target)
    except ImportError as error:
        raise UsageError(
            f"the defaults of {space.target}'s compiler are read from Triton, which is not installed: "
            "pip install 'gluonmap[compile]'"
        ) from error


def baseline_launch(space: SpaceMap) -> dict[str, Value]:
    """Return the baseline's knobs, host knobs included, and the options that the map fixes.

    Derived parameters are left out.

    Raises:
        UsageError: the baseline does not pass.
    """
    if space.outcome not in COMPILED:
        raise UsageError(
            f"the baseline of {space.kernel!r} on {space.target} is {space.outcome}, so the map has nothing to write "
            f"here. Start from one that compiles:  {probe_command(space, '--set NAME=VALUE')}"
        )
    options = options_of(space.target)
    return {**space.baseline, **{name: value for name, value in space.recipe.fixed.items() if name in options}}
