"""The audit of one kernel on one target."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gluonmap.audit.bound_entries import BoundEntry, KernelNames, bind_entry, domains_of, names_of
from gluonmap.audit.compiles import AuditCompiles
from gluonmap.audit.entry_findings import AuditContext, file_in_numbers, findings_on_file, ordered
from gluonmap.audit.entry_judge import EntryJudge
from gluonmap.audit.findings import Audit
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.key_mentions import find_mentions
from gluonmap.audit.own_list import own_list
from gluonmap.audit.reference_map import Reference, ReferenceMaps, candidate_of, compiled
from gluonmap.audit.request import AuditRequest
from gluonmap.audit.rule_run import check_rule
from gluonmap.audit.shipped_files import FileForm, ShippedFile
from gluonmap.audit.wording import entry_name, shown, shown_path
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UnknownKnob, UsageError
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.targets import Target
from gluonmap.model.wording import listed_briefly
from gluonmap.probe import rebuild
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.session import open_session
from gluonmap.probe.spelling import quoted
from gluonmap.runner.determinism import DeterminismCheck
from gluonmap.source import syntax
from gluonmap.spec.description import Description
from gluonmap.worker.protocol import Choice


def audit_target(campaign: Campaign, request: AuditRequest, target: Target) -> Audit:
    """Return the audit of the campaign's kernel on one target.

    Raises:
        UsageError: the kernel or the map cannot be used, or there is nothing to audit.
    """
    with (
        open_session(campaign, target) as kernel,
        DeterminismCheck(campaign.settings.jobs, campaign.listen) as second,
    ):
        return _Audit(AuditCompiles(campaign, kernel, target, second), request).whole()


class _Audit:
    def __init__(self, compiles: AuditCompiles, request: AuditRequest) -> None:
        self.compiles, self.request = compiles, request
        self.inspection, self.overrides = compiles.inspection, compiles.settings.overrides
        self.file = shown_path(compiles.campaign.path)
        self.maps = ReferenceMaps(compiles, request)
        self.notes = self.maps.notes

    def whole(self) -> Audit:
        space, map_file = self.maps.stored() or (None, "")
        sources, names = self._sources(space), self._names(space)
        sets = self.overrides.sets
        bounds = {s.file: [bind_entry(e, names, sets, whole=s.form.whole) for e in s.entries] for s in sources}
        reference, pruned = self._reference(space, map_file, sources, bounds, names)
        judge = EntryJudge(self.compiles, reference, names)
        judged = judge.judge_all(sources, bounds, pruned)
        every = [item for rows in judged.values() for item in rows]
        unknown = {key for item in every for key in item.bound.unknown}
        context = AuditContext(
            target=self.compiles.target.name,
            triton=self.compiles.campaign.triton,
            names=names,
            space=reference.space,
            idle=judge.idle(judged),
            mentions=find_mentions(unknown, self.compiles.campaign.path),
            baseline_entry=reference.baseline_entry,
        )
        findings = [found for s in sources for found in findings_on_file(s, judged[s.file], context)]
        checked = []
        for rule in self.request.rules:
            outcome, more = check_rule(rule, self.compiles, reference, every, self.request.samples)
            checked += [outcome] if outcome else []
            findings += more
        if reference.space is not None and reference.space.stable is False:
            self.notes.append("the kernel's code is unstable (two compiles differ): equal programs are not reported")
        self.notes += _default_notes([item.bound for item in every], reference.description, names)
        return Audit(
            kernel=self.inspection.kernel,
            file=self.file,
            target=context.target,
            triton=context.triton,
            map=reference.map,
            compiled=self.compiles.compiled,
            files=tuple(file_in_numbers(s, judged[s.file]) for s in sources),
            entries=tuple(map(JudgedEntry.checked, every)),
            rules=tuple(checked),
            findings=ordered(findings),
            notes=(*self.notes, *(note for s in sources for note in s.notes)),
        )

    def _sources(self, space: SpaceMap | None) -> tuple[ShippedFile, ...]:
        """Return the files; if none is named, the kernel's own list, unless there are rules and a map."""
        if not self.request.own_list or (self.request.rules and space is not None):
            return self.request.sources
        if self.inspection.autotune:
            return (own_list(self.inspection, self.file, syntax.text_of(self.compiles.campaign.path)),)
        if self.request.rules:
            return ()
        raise UsageError(
            f"{self.file} has no @triton.autotune list: choose what to audit with --configs FILE, "
            "--restriction EXPR or --prune FILE.py:FUNCTION."
        )

    def _names(self, space: SpaceMap | None) -> KernelNames:
        probe = self.compiles.kernel.probe
        if space is not None:
            derive, grid, args = space.recipe.derive, space.recipe.grid, space.recipe.args
        else:
            sets = self.overrides.sets
            derive = {n: text for n, text in probe.derive.items() if n not in sets} | self.overrides.derive
            grid, args = self.overrides.grid or probe.grid, {**probe.args, **self.overrides.args}
        texts = [grid, *(value for value in args.values() if isinstance(value, str))]
        names = names_of(self.inspection, derive, filter(None, texts))
        for name in self.overrides.sets:
            if names.kind(name) is None:
                known = {*names.constexprs, *names.host, *self.compiles.target.option_domains}
                raise UnknownKnob(f"kernel {self.inspection.kernel!r}", name, known)
        return names

    def _reference(
        self,
        space: SpaceMap | None,
        map_file: str,
        sources: Sequence[ShippedFile],
        bounds: Mapping[str, Sequence[BoundEntry]],
        names: KernelNames,
    ) -> tuple[Reference, set[int]]:
        """Return the map to judge by, and the ids of the entries that their own list drops before any is compiled."""
        if space is not None:
            description = rebuild.description_of(space)
            return Reference(space, description, map_file), self._pruned(sources, bounds, description)
        rows = [bound for each in bounds.values() for bound in each]
        if not rows:
            command = f"gluonmap probe {shlex.quote(self.file)} --target {self.compiles.target.name}"
            raise UsageError(f"a rule is judged by a map, and there is none of {self.file} here. Make one:  {command}")
        domains = domains_of(rows, names, self.compiles.target)
        merged: Config = {}
        for bound in rows:
            merged = {**{name: v for name, v in bound.moves.items() if name not in bound.sizes}, **merged}
        merged = {name: value for name, value in merged.items() if names.kind(name) is not None}
        description = self.maps.described(merged, domains, names)
        pruned = self._pruned(sources, bounds, description)
        left = [bound for bound in rows if id(bound) not in pruned]
        return self.maps.made(left, merged, domains, names) or Reference(None, description), pruned

    def _pruned(
        self, sources: Sequence[ShippedFile], bounds: Mapping[str, Sequence[BoundEntry]], description: Description
    ) -> set[int]:
        """Return the ids of the entries of the kernel's own list that its early_config_prune drops."""
        dropped_ids: set[int] = set()
        for rows in (bounds[item.file] for item in sources if item.form is FileForm.AUTOTUNE):
            configs = tuple(bound.entry.config for bound in rows)
            kept = self.compiles.choose(Choice(configs, args=description.candidate({}).args))
            if isinstance(kept, str):
                self.notes.append(f"the list's own early_config_prune fails here, so every entry counts: {kept}")
                continue
            dropped = [bound for place, bound in enumerate(rows) if place not in kept[0]]
            if dropped:
                names = listed_briefly([bound.entry.name for bound in dropped])
                self.notes.append(f"the list's own early_config_prune drops {names} for these arguments: not compiled")
            dropped_ids |= {id(bound) for bound in dropped}
        return dropped_ids


def _sized(bounds: Sequence[BoundEntry], description: Description, names: KernelNames) -> Iterable[str]:
    """Yield the entries whose program depends on the sizes in their names, with those sizes."""
    for bound in bounds:
        left = {name: value for name, value in bound.moves.items() if name not in bound.sizes}
        usual = candidate_of(description, msgspec.structs.replace(bound, moves=left), names)
        candidate = candidate_of(description, bound, names)
        if bound.sizes and (
            isinstance(usual, str) or isinstance(candidate, str) or compiled(usual) != compiled(candidate)
        ):
            sizes = ", ".join(shown(name, value) for name, value in bound.sizes.items())
            yield f"{sizes} ({entry_name(bound.entry)})"


def _default_notes(bounds: Sequence[BoundEntry], description: Description, names: KernelNames) -> Iterable[str]:
    """Yield notes on the values of keys that entries leave out."""
    if sized := list(dict.fromkeys(_sized(bounds, description, names))):
        yield f"compiled for the sizes in the names of file and entry: {listed_briefly(sized)}"
    ever = {name for bound in bounds for name in bound.entry.config}
    defaults = {quoted(n, v) for bound in bounds for n, v in bound.defaults.items() if n in ever}
    if defaults:
        settings = ", ".join(sorted(defaults))
        yield f"options that an entry does not set have the compiler's default: {settings} (--set changes them)"
    groups: dict[tuple[str, ...], list[str]] = {}
    for bound in bounds:
        baselines = [(n, k.baseline) for n, k in description.knobs.items() if k.kind is not KnobKind.OPTION]
        missing = tuple(quoted(name, value) for name, value in baselines if name not in bound.moves)
        groups.setdefault(missing, []).append(entry_name(bound.entry))
    for missing, entries in groups.items():
        if missing:
            who = listed_briefly(entries)
            yield f"the baseline's values are used for keys not in {who}: {', '.join(missing)} (--set changes them)"
