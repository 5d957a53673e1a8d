"""The map that an audit judges by: a stored one that is still valid, or one made of the entries alone."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gluonmap.audit.bound_entries import BoundEntry, KernelNames, extended, with_defaults
from gluonmap.audit.compiles import AuditCompiles
from gluonmap.audit.request import AuditRequest
from gluonmap.audit.shipped_files import ShippedEntry
from gluonmap.audit.wording import shown_path
from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config, Value, same
from gluonmap.model.dtypes import describe_argument
from gluonmap.model.errors import UsageError
from gluonmap.model.events import Event
from gluonmap.model.outcomes import COMPILED
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Verdict, digest_of, passed
from gluonmap.probe import map_fold, rebuild, screen
from gluonmap.runner import journal
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import describe


@dataclass(frozen=True, slots=True)
class Reference:
    """The map that an audit judges by, and the description that makes its candidates."""

    space: SpaceMap | None
    """The map; None if no entry passes."""
    description: Description
    map: str = ""
    """File of a stored map; empty for a map made for this audit."""
    baseline_entry: ShippedEntry | None = None
    """The entry that is the baseline; None if the map is a stored one."""

    def covered(self, bound: BoundEntry, candidate: Candidate) -> Config | None:
        """Return an entry as moves of the stored map; None if it sets a key that the map does not turn."""
        if not self.map or self.space is None:
            return None
        moves = {name: value for name, value in bound.moves.items() if name in self.space.baseline}
        return moves if compiled(self.description.candidate(moves)) == compiled(candidate) else None


def compiled(candidate: Candidate) -> str:
    """Return a text that is equal for compiles of one program. Of a size, it holds only the part the compiler reads."""
    seen = {name: describe_argument(value) for name, value in candidate.args.items()}
    return repr((sorted(seen.items()), sorted((name, repr(value)) for name, value in candidate.config.items())))


@dataclass(slots=True)
class ReferenceMaps:
    """Find a stored map that is still valid, or make one of the entries."""

    compiles: AuditCompiles
    request: AuditRequest
    notes: list[str] = field(default_factory=list)

    # -- a stored map --------------------------------------------------------------------------------------------

    def stored(self) -> tuple[SpaceMap, str] | None:
        """Return the stored map and its file; None if there is no valid one. A note then gives the reason.

        Its baseline is compiled again. If it is another program now, the map belongs to an earlier kernel.

        Raises:
            UsageError: the map that the user chose cannot be read, belongs to another question or is out of date.
        """
        path = self.request.map or self.compiles.campaign.map_path(self.compiles.target, self.compiles.inspection)
        if not self.request.map and not Path(path).is_file():
            return None
        space, shown = codec.read_map(Path(path)), shown_path(Path(path))
        why = self._of_something_else(space) or self._changed_since(space)
        if not why:
            return space, shown
        if self.request.map:
            raise UsageError(f"the map {shown} cannot be used: {why}.")
        self.notes.append(f"the map {shown} is not used: {why}")
        self.compiles.campaign.listen(Event("note", self.notes[-1]))
        return None

    def _of_something_else(self, space: SpaceMap) -> str:
        """Return why the map is of another kernel, target, Triton or launch; "" if it is not."""
        campaign, settings, overrides = self.compiles.campaign, self.compiles.settings, self.compiles.settings.overrides
        if space.kernel != self.compiles.inspection.kernel or space.target != self.compiles.target.name:
            return f"it is of {space.kernel} on {space.target}"
        if space.triton != campaign.triton and not self.request.any_triton:
            return f"it was made with Triton {space.triton}, and this is {campaign.triton} (--any-triton uses it)"
        if space.outcome not in COMPILED:
            return f"its baseline is {space.outcome}"
        shape = self.compiles.kernel.probe.shapes.get(overrides.regime, {}) if overrides.regime else {}
        known = {**space.recipe.fixed, **space.recipe.args, **space.shape}
        for name, value in {**shape, **overrides.args}.items():
            if not same(known.get(name), value):
                return f"it has {name} = {known.get(name)!r} and not {value!r}"
        for name, text in overrides.derive.items():
            if space.recipe.derive.get(name) != text:
                return f"it has {name} = {space.recipe.derive.get(name)!r} and not {text!r}"
        if overrides.grid and overrides.grid != space.recipe.grid:
            return f"its grid is {space.recipe.grid!r}"
        if settings.stubs and settings.stubs != space.recipe.stubs:
            return f"it was made with --stub {', '.join(space.recipe.stubs) or 'nothing'}"
        return ""

    def _changed_since(self, space: SpaceMap) -> str:
        """Return the sign that the map belongs to an earlier kernel; "" if its baseline is unchanged."""
        try:
            candidate = rebuild.description_of(space).candidate({})
        except UsageError as error:
            return str(error)
        answer = self.compiles.one(candidate, "the map's baseline")
        if not passed(answer):
            is_now = answer.outcome if isinstance(answer, Verdict) else "without an answer"
        elif space.stable is not False and space.digest and digest_of(answer) != space.digest:
            is_now = "another program"
        else:
            self.compiles.lean_on(candidate, answer)
            return ""
        command = f"gluonmap probe {shlex.quote(space.file)} --target {space.target}"
        return f"its baseline is {is_now} now, so the kernel has changed since ({command} maps it again)"

    # -- a map of the entries --------------------------------------------------------------------------------------

    def described(self, values: Config, domains: Mapping[str, tuple[Value, ...]], names: KernelNames) -> Description:
        """Return the description with these values as its baseline, and only the knobs that the entries set.

        Raises:
            NeedsHelp: a fact about the launch cannot be inferred. The message names it.
        """
        overrides, probe = self.compiles.settings.overrides, self.compiles.kernel.probe
        probe = dataclasses.replace(
            probe,
            knobs=dict(domains) or probe.knobs,
            baseline={name: value for name, value in probe.baseline.items() if names.kind(name) is not None},
        )
        config = {name: value for name, value in values.items() if names.kind(name) is not None}
        overrides = dataclasses.replace(overrides, config=config, config_name="the entries")
        return describe(self.compiles.inspection, self.compiles.target, probe, overrides)

    def made(
        self, bounds: Sequence[BoundEntry], merged: Config, domains: Mapping[str, tuple[Value, ...]], names: KernelNames
    ) -> Reference | None:
        """Return a map of the entries' values, one knob at a time, around the first passing entry; None if none passes.

        `merged` has a value for every key that some entry sets.
        """
        tried: set[str] = set()
        for bound in bounds:
            start = {**merged, **{name: value for name, value in bound.moves.items() if name not in bound.sizes}}
            description = self.described(start, domains, names)
            full = with_defaults(bound, description, names)
            candidate = candidate_of(description, full, names)
            if isinstance(candidate, str) or journal.key_of(candidate) in tried:
                continue
            tried.add(journal.key_of(candidate))
            answer = self.compiles.one(candidate, "entry")
            if passed(answer):
                self.compiles.lean_on(candidate, answer)
                description = self.described({**start, **full.defaults}, domains, names)
                return Reference(self._folded(description, domains), description, baseline_entry=bound.entry)
        return None

    def _folded(self, description: Description, domains: Mapping[str, tuple[Value, ...]]) -> SpaceMap:
        """Return the map of the baseline and the single values of the entries' knobs."""
        base = description.candidate({})
        singles = [c for (name, _), c in screen.singles(description).items() if name in domains]
        answer = self.compiles.one(base, "baseline")
        found = self.compiles.ask(singles, "single values")
        if passed(answer):
            alike = [c for c, a in zip(singles, found, strict=True) if passed(a) and digest_of(a) == digest_of(answer)]
            self.compiles.second.confirm(self.compiles.oracle, [base, *alike])
        stable = {journal.compile_key(c): self.compiles.is_stable(c) for c in (base, *singles)}
        campaign = self.compiles.campaign
        return map_fold.fold(
            description,
            self.compiles.inspection,
            map_fold.MapIdentity(shown_path(campaign.path), campaign.triton, self.compiles.settings.stubs, ""),
            self.compiles.answers,
            {key: same for key, same in stable.items() if same is not None},
            self.compiles.kernel.lines,
        )


def candidate_of(description: Description, bound: BoundEntry, names: KernelNames) -> Candidate | str:
    """Return the candidate of an entry; or, in words, why host code cannot make it."""
    try:
        return extended(description, bound.moves, names).candidate(bound.moves)
    except UsageError as error:
        return str(error)
