"""Verdicts on entries: from the map where it knows them, else from a compile."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gluonmap.audit.blame import BlameFinder
from gluonmap.audit.bound_entries import BoundEntry, KernelNames, extended, full_config, with_defaults
from gluonmap.audit.compiles import AuditCompiles
from gluonmap.audit.judged_entry import JudgedEntry
from gluonmap.audit.reference_map import Reference, candidate_of
from gluonmap.audit.shipped_files import ShippedFile
from gluonmap.audit.wording import shown_path
from gluonmap.model.candidate import Candidate, Value, same
from gluonmap.model.errors import UsageError
from gluonmap.model.joint_map import Standing
from gluonmap.model.knobs import KnobKind
from gluonmap.model.outcomes import Feasibility, feasibility
from gluonmap.model.verdict import Answer, Fault, digest_of, passed
from gluonmap.probe import screen
from gluonmap.probe.spelling import quoted
from gluonmap.query.feasibility import Basis, Judge, Judgement
from gluonmap.spec.description import Description


@dataclass(frozen=True, slots=True)
class EntryToCompile:
    """An entry to compile, and its place in the result."""

    file: str
    row: int
    bound: BoundEntry
    candidate: Candidate


class EntryJudge:
    """Judge the entries of one audit."""

    def __init__(self, compiles: AuditCompiles, reference: Reference, names: KernelNames) -> None:
        self.compiles, self.reference, self.names = compiles, reference, names
        self.judge = Judge(reference.space) if reference.space is not None else None
        self.demands = screen.demands(compiles.inspection, reference.description)

    def judge_all(
        self, sources: Sequence[ShippedFile], bounds: Mapping[str, Sequence[BoundEntry]], pruned: set[int]
    ) -> dict[str, list[JudgedEntry]]:
        """Return the verdict on every entry, by file. `pruned` holds the ids of entries that are not compiled."""
        found: dict[str, list[JudgedEntry]] = {}
        waiting: list[EntryToCompile] = []
        for source in sources:
            rows = found.setdefault(source.file, [])
            for bound in bounds[source.file]:
                full = with_defaults(bound, self.reference.description, self.names)
                judged = JudgedEntry(bound=full, verdict=Feasibility.UNKNOWN, basis="no answer")
                candidate = candidate_of(self.reference.description, full, self.names)
                if id(bound) in pruned:
                    judged = msgspec.structs.replace(judged, basis="pruned")
                elif isinstance(candidate, str):
                    judged = msgspec.structs.replace(judged, reason=candidate)
                elif known := self._from_map(full, candidate):
                    judged = known
                else:
                    waiting.append(EntryToCompile(source.file, len(rows), full, candidate))
                rows.append(judged)
        answers = self.compiles.ask([item.candidate for item in waiting], "entries to compile")
        for item, answer in zip(waiting, answers, strict=True):
            found[item.file][item.row] = self._compiled(item, answer)
        self._confirm(found, waiting)
        return self._blamed(found)

    def _blamed(self, found: Mapping[str, Sequence[JudgedEntry]]) -> dict[str, list[JudgedEntry]]:
        every = BlameFinder(self.compiles, self.reference.description, self.names).with_blame(
            [item for rows in found.values() for item in rows]
        )
        rest = iter(every)
        return {file: list(itertools.islice(rest, len(rows))) for file, rows in found.items()}

    def _from_map(self, bound: BoundEntry, candidate: Candidate) -> JudgedEntry | None:
        """Return the stored map's verdict on an entry; None if it is not covered or lacks facts of a compile."""
        if self.judge is None or self.reference.covered(bound, candidate) is None:
            return None
        config = full_config(bound, self.judge.space.baseline)
        found = self.judge(config)
        passing = found.verdict is Feasibility.FEASIBLE
        if found.basis is not Basis.COMPILED or (passing and (found.resources is None or not found.digest)):
            return None
        return JudgedEntry(
            bound=bound,
            verdict=found.verdict,
            basis="map",
            config=config,
            outcome=found.outcome,
            reason=found.reason,
            at=found.line,
            digest=found.digest,
            resources=found.resources,
            launch=self._launch(found.digest, bound) if passing else "",
            because=() if passing else self._because(bound, found),
            repeat=self._repeat(bound, candidate),
        )

    def _compiled(self, item: EntryToCompile, answer: Answer) -> JudgedEntry:
        bound = item.bound
        config = full_config(bound, self.judge.space.baseline) if self.judge else {}
        if isinstance(answer, Fault):
            return JudgedEntry(
                bound=bound, verdict=Feasibility.UNKNOWN, basis="no answer", config=config, reason=answer.text
            )
        verdict, reason, digest = feasibility(answer.outcome), answer.reason, digest_of(answer)
        line = self.compiles.kernel.lines(reason.location) if reason and reason.location else None
        predicted = self.judge(config) if self.judge and self.judge.space.joint else None
        return JudgedEntry(
            bound=bound,
            verdict=verdict,
            basis="compiled" if verdict is not Feasibility.UNKNOWN else "no answer",
            config=config,
            outcome=answer.outcome.value,
            how=reason.kind if reason else "",
            reason=reason.text if reason else "",
            at=f"{reason.location.file}:{line}" if reason and reason.location and line else "",
            digest=digest,
            resources=answer.resources,
            launch=self._launch(digest, bound) if digest and passed(answer) else "",
            because=self._because(bound, predicted) if verdict is Feasibility.INFEASIBLE else (),
            repeat=self._repeat(bound, item.candidate),
        )

    def _launch(self, digest: str, bound: BoundEntry) -> str:
        """Return program and launch at the audit's own sizes, so that entries for several sizes are compared at one."""
        moves = {name: value for name, value in bound.moves.items() if name not in bound.sizes}
        try:
            candidate = self._described(bound).candidate(moves)
        except UsageError:
            return digest
        return f"{digest} {candidate.grid!r} {sorted(candidate.args.items(), key=repr)!r}"

    def _described(self, bound: BoundEntry) -> Description:
        return extended(self.reference.description, bound.moves, self.names)

    def _because(self, bound: BoundEntry, judgement: Judgement | None) -> tuple[str, ...]:
        """Return what forbids an entry: demands of the source with their lines, then learned constraints of the map."""
        values = self._described(bound).namespace(bound.moves)
        values.setdefault("num_warps", self.names.options.get("num_warps", 4))
        found: dict[str, list[str]] = {}
        for rule in self.demands:
            if screen.violates(rule, values):
                line = self.compiles.kernel.lines(rule.location)
                found.setdefault(rule.text, []).extend([str(line)] if line else [])
        read = [f"{text} ({_lines(lines)})" if lines else text for text, lines in found.items()]
        telling = judgement.shown_constraints if judgement else ()
        more = [f"{c.words} ({c.standing})" for c in telling if not (read and c.standing is Standing.READ)]
        return tuple(dict.fromkeys([*read, *more]))

    def _confirm(self, judged: dict[str, list[JudgedEntry]], waiting: Sequence[EntryToCompile]) -> None:
        """Compile entries of one program again under another hash seed; clear `launch` where they differ."""
        alike: list[EntryToCompile] = []
        for file, rows in judged.items():
            groups: dict[str, set[str]] = {}
            for row in rows:
                groups.setdefault(row.launch, set()).add(repr(row.bound.entry.config))
            shared = {launch for launch, configs in groups.items() if launch and len(configs) > 1}
            alike += [item for item in waiting if item.file == file and rows[item.row].launch in shared]
        self.compiles.second.confirm(self.compiles.oracle, [item.candidate for item in alike])
        for item in alike:
            if self.compiles.is_stable(item.candidate) is False:
                judged[item.file][item.row] = msgspec.structs.replace(judged[item.file][item.row], launch="")

    def idle(self, judged: Mapping[str, Sequence[JudgedEntry]]) -> dict[str, tuple[Value, ...]]:
        """Return options that entries set, that the map lacks, and that leave its baseline's program unchanged."""
        space = self.reference.space
        if not self.reference.map or space is None or space.stable is False:
            return {}
        asked: dict[tuple[str, str], tuple[Value, Candidate]] = {}
        for item in (item for rows in judged.values() for item in rows):
            for name, value in item.bound.entry.written.items():
                turned = name in space.baseline or name in space.recipe.fixed or name in item.bound.overridden
                option = self.names.kind(name) is KnobKind.OPTION and not same(value, self.names.options[name])
                if option and not turned:
                    description = extended(self.reference.description, {name: value}, self.names)
                    asked[name, repr(value)] = (value, description.candidate({name: value}))
        answers = self.compiles.ask([candidate for _, candidate in asked.values()], "options around the baseline")
        found: dict[str, tuple[Value, ...]] = {}
        for ((name, _), (value, candidate)), answer in zip(asked.items(), answers, strict=True):
            if digest_of(answer) == space.digest:
                self.compiles.second.confirm(self.compiles.oracle, [candidate])
                found[name] = (*found.get(name, ()), value) if self.compiles.is_stable(candidate) else ()
        return found

    def _repeat(self, bound: BoundEntry, candidate: Candidate) -> str:
        """Return a command that compiles the entry again: by the map if possible, else as the baseline of a probe."""
        moves, space = self.reference.covered(bound, candidate), self.reference.space
        if moves is not None and space is not None:
            away = [quoted(n, v) for n, v in moves.items() if not same(v, space.baseline[n])]
            return " ".join([f"gluonmap repeat {shlex.quote(self.reference.map)}", *away])
        settings, overrides = self.compiles.settings, self.compiles.settings.overrides
        file = shlex.quote(shown_path(self.compiles.campaign.path))
        parts = [f"gluonmap probe {file} --target {self.compiles.target.name}"]
        parts += [f"--kernel {overrides.kernel}"] if overrides.kernel else []
        parts += [f"--stub {name}" for name in settings.stubs]
        parts += [f"--probe-file {shlex.quote(str(settings.probe_file))}"] if settings.probe_file else []
        parts += [f"--regime {overrides.regime}"] if overrides.regime else []
        args = {**overrides.args, **bound.sizes}
        parts += [f"--arg {shlex.quote(f'{name}={value}')}" for name, value in args.items()]
        parts += [f"--derive {shlex.quote(f'{name}={text}')}" for name, text in overrides.derive.items()]
        parts += [f"--grid {shlex.quote(overrides.grid)}"] if overrides.grid else []
        entry, sets = bound.entry, bound.moves
        if Path(entry.file).suffix == ".json" and not entry.name.startswith("["):
            parts.append(f"--config {shlex.quote(f'{entry.file}#{entry.name}' if entry.name else entry.file)}")
            sets = {**overrides.sets, **bound.defaults}
        parts += [f"--set {quoted(name, value)}" for name, value in sets.items() if name not in bound.sizes]
        return " ".join([*parts, "--depth singles", '--out "$(mktemp -d)"'])


def _lines(numbers: Sequence[str]) -> str:
    once = list(dict.fromkeys(numbers))
    return f"line{'s' if len(once) > 1 else ''} {', '.join(once)}"
