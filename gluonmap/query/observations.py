"""Observed configurations: one observation for each configuration that a map asked.

A map stores its answers in four lists: the baseline and its single moves, the questions of the joint search, the
programs that were compiled to machine code, and the programs that failed when they were executed. `observations` reads
all four and merges the answers to one configuration, so that other modules need not walk these lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from gluonmap.model.candidate import Config
from gluonmap.model.joint_map import Joint, Refused, Tried, Verified
from gluonmap.model.outcomes import COMPILED, Outcome, is_evidence, named
from gluonmap.model.space_map import SpaceMap, ValueMap
from gluonmap.model.verdict import Check, Figures, Resources, Timing, Verdict, digest_of

ConfigKey = tuple[str, ...]
"""A configuration as a dictionary key."""


def config_key(config: Config) -> ConfigKey:
    """Return a key that is equal for configurations of the same values: True, 1, 1.0, "1" and -0.0 all differ."""
    return tuple(map(repr, config.values()))


class Origin(StrEnum):
    """The part of a map that an observation's outcome is taken from."""

    BASELINE = "baseline"
    SINGLE = "single value"
    """The baseline with one knob moved."""
    JOINT = "joint"
    """A compile of the joint search; it executes nothing."""
    PROGRAM = "program"
    """A program of the reduced space: compiled to machine code, and passed as far as it was executed."""
    REFUSED = "refused"
    """A program that compiled, and failed when it was executed."""
    ANSWER = "answer"
    """A compile made now, which is no part of the map."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One configuration that was asked, and the answer."""

    config: Config
    """A value for every knob, in signature order."""
    outcome: str
    """An `Outcome`, or "unknown" where no answer could be had."""
    origin: Origin
    stage: str = ""
    """Stage at which it ended: "front end", or a stage of the back end."""
    reason: str = ""
    """Message of the failure."""
    kind: str = ""
    """Signal, exception class, "budget" or "deadline". The joint search does not store it."""
    place: str = ""
    """Place in the kernel's source where it ended: "file.py:112"."""
    digest: str = ""
    """Digest of the program alone, where the map has it."""
    launch_key: str = ""
    """Equal for two observations of one program with one launch; empty where the joint search did not ask."""
    resources: Resources | None = None
    executed: str = ""
    """Outcome of the execution whose results follow. Empty: the map has no results of an execution."""
    check: Check | None = None
    figures: Figures | None = None
    timing: Timing | None = None

    @property
    def compiled(self) -> bool:
        """Return whether it compiled and nothing speaks against it."""
        return self.outcome in COMPILED

    @property
    def failed_on_device(self) -> bool:
        """Return whether it failed when it was executed. Constraints are learned from compiles and ignore this."""
        outcome = named(self.executed)
        failed = outcome.failed if outcome else bool(self.executed)  # an outcome of a newer gluonmap: take no risk
        return self.origin is Origin.REFUSED or failed


@dataclass(frozen=True)
class Observations:
    """All observations of one map: each part in its own order, and merged to one for each configuration.

    Iteration yields the merged ones in map order: the questions of the joint search as asked, then the programs,
    refused programs, baseline and single values that it did not ask.
    """

    space: SpaceMap
    baseline: Observation
    values: Mapping[str, tuple[Observation, ...]]
    """Knob → the baseline with each of the knob's values, in the order of the map."""
    joint: tuple[Observation, ...]
    """Compiles of the joint search, in the order asked. A configuration that was asked again is in it twice."""
    programs: tuple[Observation, ...]
    refused: tuple[Observation, ...]
    by_key: Mapping[ConfigKey, Observation]
    """Merged observations by `config_key`."""
    unstable: Mapping[ConfigKey, tuple[str, ...]]
    """Configurations that were answered in two ways, with their outcomes."""
    unanswered: frozenset[ConfigKey]
    """Configurations without an answer that is evidence."""

    def __iter__(self) -> Iterator[Observation]:
        return iter(self.by_key.values())

    def __len__(self) -> int:
        return len(self.by_key)

    def get(self, config: Config) -> Observation | None:
        """Return the observation of a complete configuration; None: it was not asked."""
        return self.by_key.get(config_key(config))


def observations(space: SpaceMap) -> Observations:
    """Return the observations of a map. This is a pass over the whole map, so build them once and pass them on."""
    baseline = _single(space.baseline, space, Origin.BASELINE)
    values = {name: tuple(_values(space, name)) for name in space.knobs}
    joint = tuple(_joint(space, space.joint)) if space.joint else ()
    programs = tuple(_program(space, item) for item in space.joint.programs) if space.joint else ()
    refused = tuple(_refused(space, item) for item in space.joint.refused) if space.joint else ()
    singles = (baseline, *(item for items in values.values() for item in items))
    unstable = space.joint.unstable if space.joint else ()
    unanswered = space.joint.unknown if space.joint else ()
    return Observations(
        space,
        baseline,
        values,
        joint,
        programs,
        refused,
        _merged(joint, programs, refused, singles),
        {config_key({**space.baseline, **item.config}): item.outcomes for item in unstable},
        frozenset(config_key({**space.baseline, **config}) for config in unanswered),
    )


def observation_of(config: Config, verdict: Verdict, place: str = "") -> Observation:
    """Return the observation of a compile that was made now. `place`: where in the source a failure ended."""
    reason, stage = (verdict.reason.text, verdict.reason.phase) if verdict.reason else ("", "")
    return Observation(
        config,
        verdict.outcome,
        Origin.ANSWER,
        stage=stage,
        reason=reason,
        kind=verdict.reason.kind if verdict.reason else "",
        place=place,
        digest=digest_of(verdict),
        resources=verdict.resources,
    )


def _merged(
    joint: tuple[Observation, ...],
    programs: tuple[Observation, ...],
    refused: tuple[Observation, ...],
    singles: tuple[Observation, ...],
) -> dict[ConfigKey, Observation]:
    """Return one observation for each configuration. A later part knows more about it and replaces an earlier one."""
    merged = {config_key(item.config): item for item in joint}
    for item in programs:  # some were compiled for the reduced space alone
        known = merged.get(config_key(item.config))
        merged[config_key(item.config)] = replace(item, launch_key=known.launch_key if known else "")
    merged |= {config_key(item.config): item for item in refused}
    for item in singles:
        key = config_key(item.config)
        known = merged.get(key)
        if known is None:
            merged[key] = item
        elif is_evidence(item.outcome) or item.failed_on_device:
            merged[key] = replace(_with_execution(item, item if item.executed else known), launch_key=known.launch_key)
        else:
            merged[key] = _with_execution(known, item if item.executed else known)
    return merged


def _with_execution(item: Observation, source: Observation) -> Observation:
    """Return `item` with the results of the execution that `source` has."""
    return replace(item, executed=source.executed, check=source.check, figures=source.figures, timing=source.timing)


def _single(config: Config, stored: SpaceMap | ValueMap, origin: Origin) -> Observation:
    """Return the observation of the baseline, or of the baseline with one knob moved."""
    measured = stored.measured or None
    return Observation(
        config,
        stored.outcome,
        origin,
        stage=stored.stage,
        reason=stored.reason,
        kind=stored.kind,
        place=f"{stored.file}:{stored.line}" if stored.line is not None else "",
        digest=stored.digest,
        resources=stored.resources,
        executed=stored.outcome if measured else "",
        check=measured.check if measured else None,
        figures=measured.figures if measured else None,
        timing=measured.timing if measured else None,
    )


def _values(space: SpaceMap, name: str) -> Iterator[Observation]:
    baseline = config_key(space.baseline)
    for value in space.knobs[name].values:
        config = {**space.baseline, name: value.value}
        yield _single(config, value, Origin.BASELINE if config_key(config) == baseline else Origin.SINGLE)


def _joint(space: SpaceMap, joint: Joint) -> Iterator[Observation]:
    programs = _programs_by_launch(space, joint)
    for item in joint.tried:
        program = programs.get(item.digest)
        yield Observation(
            _tried_config(space, joint, item),
            item.outcome,
            Origin.JOINT,
            stage=item.stage,
            reason=item.reason,
            place=item.line,
            digest=program.digest if program else "",
            launch_key=item.digest,
            resources=program.resources if program else None,
        )


def _tried_config(space: SpaceMap, joint: Joint, item: Tried) -> Config:
    return {**space.baseline, **dict(zip(joint.domains, item.values, strict=True))}


def _programs_by_launch(space: SpaceMap, joint: Joint) -> dict[str, Verified]:
    """Return the verified programs by the launch key of the question that asked their configuration."""
    if not joint.programs:
        return {}
    launches = {config_key(_tried_config(space, joint, item)): item.digest for item in joint.tried if item.digest}
    found = ((launches.get(config_key({**space.baseline, **item.config}), ""), item) for item in joint.programs)
    return {launch: item for launch, item in found if launch}


def _program(space: SpaceMap, stored: Verified) -> Observation:
    executed = stored.check is not None or stored.figures is not None
    return Observation(
        {**space.baseline, **stored.config},
        Outcome.PASS,
        Origin.PROGRAM,
        digest=stored.digest,
        resources=stored.resources,
        executed=Outcome.PASS if executed else "",
        check=stored.check,
        figures=stored.figures,
        timing=stored.timing,
    )


def _refused(space: SpaceMap, stored: Refused) -> Observation:
    return Observation(
        {**space.baseline, **stored.config},
        stored.outcome,
        Origin.REFUSED,
        stage=stored.stage,
        reason=stored.reason,
        kind=stored.kind,
        digest=stored.digest,
    )
