"""One knob at a time: the candidates to ask, and the map that their answers fold into. No I/O, no clock."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from gluonmap.constraints import expressions
from gluonmap.model.candidate import Candidate, Config, Value, same
from gluonmap.model.errors import UsageError
from gluonmap.model.inspection import FunctionSource, Inspection, LiteralRule
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.space_map import KnobMap, Measured, OnDevice, Recipe, SpaceMap, ValueMap
from gluonmap.model.verdict import COMPILED, Answer, Fault, Location, Outcome, Program, Verdict, compiled, digest_of
from gluonmap.runner.journal import compile_key, key_of
from gluonmap.source import code_lines, syntax
from gluonmap.source.literal_rules import read_literal_rules
from gluonmap.source.reads import find_reads
from gluonmap.spec.description import Description

_CHANGES = {
    "arguments": "the kernel's arguments",
    "descriptor only": "the kernel descriptor (registers, private memory)",
    "grid": "the grid",
    "instructions": "instructions",
    "launch only": "threads or shared memory of the launch",
}
EXECUTED_WRONG = (Outcome.WRONG, Outcome.UNSAFE, Outcome.CRASHED, Outcome.HUNG)
"""Outcomes of an execution that speak against a value."""
UNSTABLE = "unstable code: another compile of it gave another program, so equal programs prove nothing"
Lines = Callable[[Location], int | None]
"""Today's line in the file of a place in a function."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What a map says about itself and that no answer tells."""

    file: str
    """As the user names it."""
    triton: str
    stubs: tuple[str, ...]
    map_path: str
    """Where the map is stored, for the commands that repeat a candidate."""
    probe_file: str = ""
    """As the user would name it."""
    source: dict[str, str] = field(default_factory=dict)
    """As in the map."""


def singles(description: Description) -> dict[tuple[str, int], Candidate]:
    """The candidates of all moves of one knob: (knob, place in its domain) -> candidate, without the baseline's own."""
    return {
        (name, place): description.candidate({name: value})
        for name, knob in description.knobs.items()
        for place, value in enumerate(knob.domain)
        if not same(value, knob.baseline)
    }


def demands(inspection: Inspection, description: Description) -> tuple[LiteralRule, ...]:
    """What layouts and assertions in the source demand of a configuration."""
    return tuple(read_literal_rules(inspection.functions, inspection.parameters, description.target.warp_size))


def changing(description: Description, answers: Mapping[str, Answer]) -> dict[str, list[Value]]:
    """Values by knob that compute something else than the baseline, where no reference says which is right."""
    found: dict[str, list[Value]] = {}
    for (name, place), candidate in singles(description).items():
        answer = answers.get(key_of(candidate))
        if isinstance(answer, Verdict) and _changes_result(answer):
            found.setdefault(name, []).append(description.knobs[name].domain[place])
    return found


def failing(description: Description, answers: Mapping[str, Answer]) -> dict[str, list[Value]]:
    """Values by knob that compile, and fail when they are executed."""
    found: dict[str, list[Value]] = {}
    for (name, place), candidate in singles(description).items():
        answer = answers.get(key_of(candidate))
        if isinstance(answer, Verdict) and answer.stage.executes and answer.outcome in EXECUTED_WRONG:
            found.setdefault(name, []).append(description.knobs[name].domain[place])
    return found


def without(problem: Mapping[str, Sequence[Value]]) -> list[str]:
    """Restrictions that leave these values out."""
    return [f"{name} not in {tuple(values)!r}" for name, values in problem.items()]


def _changes_result(verdict: Verdict) -> bool:
    return verdict.outcome is Outcome.WRONG and verdict.check is not None and verdict.check.against == "baseline"


def unread(inspection: Inspection, description: Description) -> Sequence[str]:
    """Return the knobs that neither the kernel nor the compiler nor any host expression reads."""
    texts = [description.grid, *description.derive.values(), *map(str, description.args.values())]
    told = " ".join(texts)
    return [
        name
        for name, knob in description.knobs.items()
        if knob.kind is KnobKind.CONSTEXPR
        and name not in told  # a name within another one is a read too many, which costs comparisons and no truth
        and not find_reads(inspection.functions, name)
    ]


def fold(
    description: Description,
    inspection: Inspection,
    identity: Identity,
    answers: Mapping[str, Answer],
    stable: Mapping[str, bool],
    lines: Lines,
) -> SpaceMap:
    """The map that the answers (by candidate key) give. The baseline must have been answered.

    `stable` tells, by the compile's key, whether a second compile under another hash seed gave the same program.
    """
    return _Fold(description, inspection, identity, answers, stable, lines).map()


class _Fold:
    def __init__(
        self,
        description: Description,
        inspection: Inspection,
        identity: Identity,
        answers: Mapping[str, Answer],
        stable: Mapping[str, bool],
        lines: Lines,
    ) -> None:
        self.description, self.inspection, self.identity = description, inspection, identity
        self.answers, self.confirmed, self.lines = answers, stable, lines
        self.functions: Sequence[FunctionSource] = inspection.functions
        self.baseline = description.candidate({})
        self.base_answer = answers[key_of(self.baseline)]
        self.stable = stable.get(compile_key(self.baseline))
        self.rules = demands(inspection, description)
        self.missing = 0

    def map(self) -> SpaceMap:
        base = self.base_answer
        judged = compiled(base)
        knobs = {name: self._knob(name) for name in self.description.knobs} if judged else {}
        verdict = base if isinstance(base, Verdict) else None
        reason = verdict.reason if verdict else None
        description, trial = self.description, self.baseline.trial
        return SpaceMap(
            kernel=self.inspection.kernel,
            file=self.identity.file,
            target=description.target.name,
            triton=self.identity.triton,
            specialisation=description.specialisation(),
            baseline=description.baseline,
            knobs=knobs,
            source=self.identity.source,
            recipe=Recipe(
                description.args,
                description.fixed,
                description.derive,
                description.grid,
                self.identity.stubs,
                trial,
                self.identity.probe_file if trial else "",
            ),
            shape=description.shape,
            grid=self.baseline.grid,
            outcome=verdict.outcome.value if verdict else "unknown",
            stable=self.stable,
            resources=verdict.resources if verdict else None,
            digest=digest_of(base),
            stage=reason.phase if reason else "",
            kind=reason.kind if reason else "",
            exit_status=None if judged or not verdict else verdict.exit_status,
            reason=reason.text if reason else base.text if isinstance(base, Fault) else "",
            line=self._line(reason.location) if reason else None,
            because=() if judged else self._because({}),
            next_step="" if judged else self._next_step(),
            warnings=verdict.warnings if verdict else (),
            fixed=self._fixed(),
            not_probed={n: w for n, w in description.not_probed.items() if n not in description.fixed},
            literals=self._rule_texts(self.rules),
            notes=self._notes(),
            unanswered=self.missing,
            repeat=self._repeat({}),
            on_device=OnDevice(self.baseline.stage, trial.device) if trial else msgspec.UNSET,
            measured=_measured(base),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = list(self.description.notes)
        if self.stable is False:
            notes.insert(
                0,
                "two compiles of the baseline gave two programs: this kernel's code is unstable, so no value can be "
                "called inert or live",
            )
        return tuple(notes)

    def _next_step(self) -> str:
        base = self.base_answer
        if isinstance(base, Verdict) and base.outcome is Outcome.SKIPPED:
            return "see that inputs(), reference() and the device fit the candidate, or map it without --stage"
        if isinstance(base, Verdict) and base.stage.executes:
            return "repair the kernel or the probe file's reference, or start from a configuration that is right"
        if isinstance(base, Verdict) and base.outcome is Outcome.HUNG:
            return "give it more time with --deadline, or start from a smaller tile with --set NAME=VALUE"
        return (
            "start from a configuration that compiles (--set NAME=VALUE, --config FILE.json, or the probe file); "
            "gluonmap find-default, with the same flags, looks for one"
        )

    def _fixed(self) -> dict[str, str]:
        fixed = dict(self.description.why_fixed)
        for name in self.description.derive:
            if name in self.description.parameters and self.description.parameters[name].constexpr:
                fixed[name] = f"{self.baseline.config.get(name)!r}: derived, {self.description.derive[name]}"
        for name, parameter in self.description.parameters.items():
            if parameter.heuristic:
                fixed[name] = "computed by @triton.heuristics"
        for name, value in self.description.fixed.items():
            fixed[name] = f"{value!r}: {fixed.get(name) or self.description.not_probed.get(name) or 'set, not turned'}"
        return {n: w if w else "not turned" for n, w in fixed.items()}

    # -- one knob ------------------------------------------------------------------------------------------------

    def _knob(self, name: str) -> KnobMap:
        knob = self.description.knobs[name]
        values = tuple(self._value(name, value) for value in knob.domain)
        moved = [v for v in values if v.effect is not Effect.BASELINE]
        knob_class = classify(moved)
        return KnobMap(
            knob_class=knob_class,
            kind=knob.kind,
            baseline=knob.baseline,
            why=self._why(name, knob.kind, knob_class, moved),
            values=values,
            equivalent=self._equivalent(name, values),
            line=self._declared(name),
        )

    def _value(self, name: str, value: Value) -> ValueMap:
        moves: Config = {name: value}
        candidate = self.description.candidate(moves)
        is_baseline = same(value, self.description.knobs[name].baseline)
        answer = self.base_answer if is_baseline else self.answers.get(key_of(candidate))
        repeat = self._repeat({} if is_baseline else moves)
        if answer is None:
            self.missing += 1
            return ValueMap(value, "unknown", Effect.UNKNOWN, reason="not asked", repeat=repeat)
        if isinstance(answer, Fault):
            return ValueMap(
                value, "unknown", Effect.UNKNOWN, reason=answer.text, exit_status=answer.exit_status, repeat=repeat
            )
        reason = answer.reason
        effect, detail = (Effect.BASELINE, "") if is_baseline else self._effect(candidate, answer)
        return ValueMap(
            value=value,
            outcome=answer.outcome.value,
            effect=effect,
            reason=reason.text if reason else UNSTABLE if detail == "unstable code" else "",
            line=self._line(reason.location) if reason else None,
            file=reason.location.file if reason and reason.location else "",
            stage=reason.phase if reason else "",
            kind=reason.kind if reason else "",
            exit_status=answer.exit_status,
            digest=digest_of(answer),
            code=answer.program.code if answer.program else "",
            detail=detail,
            because=self._because(moves) if effect is Effect.ABORTING else (),
            resources=answer.resources,
            warnings=answer.warnings,
            repeat=repeat,
            measured=_measured(answer),
        )

    def _effect(self, candidate: Candidate, verdict: Verdict) -> tuple[Effect, str]:
        """What a move does, and what differs."""
        if verdict.outcome is Outcome.SKIPPED:
            return Effect.UNKNOWN, ""
        if _changes_result(verdict):
            return Effect.CHANGES_RESULT, ""
        if not verdict.outcome.compiled:
            return Effect.ABORTING, ""
        base = self.base_answer
        assert isinstance(base, Verdict) and base.program and verdict.program
        if self.stable is False:
            return Effect.UNKNOWN, "unstable code"
        if verdict.program.digest != base.program.digest:
            return Effect.LIVE, _difference(base.program, verdict.program)
        if candidate.grid != self.baseline.grid:
            return Effect.LIVE_HOST, "grid"
        if candidate.args != self.baseline.args:
            return Effect.LIVE_HOST, "arguments"
        match self.confirmed.get(compile_key(candidate)):
            case True:
                return Effect.INERT, ""
            case False:
                return Effect.UNKNOWN, "unstable code"
            case None:
                return Effect.UNKNOWN, "same program, compiled once"

    def _equivalent(self, name: str, values: Sequence[ValueMap]) -> tuple[tuple[Value, ...], ...]:
        """Values whose programs, grids and arguments are equal; unstable code proves nothing."""
        if self.stable is False:
            return ()
        groups: dict[object, list[Value]] = {}
        for value in values:
            if value.outcome in COMPILED and value.digest:
                candidate = self.description.candidate({name: value.value})
                if self.confirmed.get(compile_key(candidate)) is False:
                    continue
                groups.setdefault((value.digest, candidate.grid, repr(candidate.args)), []).append(value.value)
        return tuple(tuple(group) for group in groups.values() if len(group) > 1)

    def _why(self, name: str, kind: KnobKind, knob_class: KnobClass, moved: Sequence[ValueMap]) -> str:
        """One sentence: why the knob is of its class."""
        match knob_class:
            case KnobClass.INERT:
                return self._why_inert(name, kind)
            case KnobClass.PINNED | KnobClass.BOUNDED:
                failing = [v for v in moved if v.effect in FORBIDDING]
                if changing := [v for v in failing if v.effect is Effect.CHANGES_RESULT]:
                    return self._why_it_changes(changing, moved)
                because = list(dict.fromkeys(b for v in failing for b in v.because))
                reasons = list(dict.fromkeys((v.because[0] if v.because else v.reason) for v in failing))
                said = because[0] if because else failing[0].reason
                place = "" if because or failing[0].line is None else f" (line {failing[0].line})"
                place += (
                    f", and {len(reasons) - 1} other reason{'s' if len(reasons) > 2 else ''}" if reasons[1:] else ""
                )
                left = [v for v in moved if v.effect in (Effect.LIVE, Effect.LIVE_HOST, Effect.INERT)]
                rest = f"; {len(left)} other{'s' if len(left) > 1 else ''}: {_effects(left)}" if left else ""
                tied = self._tied(name, failing)
                return f"{said}{place}{rest}{f'; it may move together with {_listed(tied)}' if tied else ''}"
            case KnobClass.LIVE:
                seen = sorted({v.detail for v in moved if v.effect in (Effect.LIVE, Effect.LIVE_HOST) and v.detail})
                return f"changes {_listed([_CHANGES[detail] for detail in seen])}"
            case KnobClass.UNKNOWN:
                return "no answer tells"

    def _why_it_changes(self, changing: Sequence[ValueMap], moved: Sequence[ValueMap]) -> str:
        told = _listed([repr(v.value) for v in changing])
        rest = [v for v in moved if v not in changing]
        others = f"; {len(rest)} other{'s' if len(rest) > 1 else ''}: {_effects(rest)}" if rest else ""
        does = "changes" if len(changing) == 1 else "change"
        return f"part of the problem, not of the tuning: {told} {does} the numbers beyond rounding{others}"

    def _tied(self, name: str, failing: Sequence[ValueMap]) -> list[str]:
        """Other knobs that a demand which every failing value violates also speaks of."""
        turned = self.description.knobs
        found: list[str] = []
        for rule in self.rules:
            others = [k for k in rule.knobs if k != name and k in turned]
            if name in rule.knobs and others:
                moved = [self.description.namespace({name: v.value}) for v in failing]
                if all(violates(rule, names) for names in moved):
                    found += [k for k in others if k not in found]
        return found

    def _why_inert(self, name: str, kind: KnobKind) -> str:
        same_program = "identical program"
        reads = find_reads(self.functions, name) if kind is not KnobKind.OPTION else ()
        literals = [rule for rule in self.rules if rule.knobs == (name,) and rule.expression == "True"]
        literal = f"; {self._rule_texts(literals)[0]}" if literals else ""
        declared = self._declared(name)
        place = f" (line {declared})" if declared else ""
        match kind:
            case KnobKind.OPTION:
                return f"option ignored by the back end for these argument types: {same_program}{literal}"
            case KnobKind.CONSTEXPR_AND_OPTION if not reads:
                return f"declared, never read{place}, and ignored as an option: {same_program}{literal}"
            case KnobKind.CONSTEXPR if not reads:
                return f"declared, never read{place}: {same_program}"
            case KnobKind.HOST:
                return f"changes neither program nor launch: {same_program}"
            case _:
                line = self._line(reads[0]) if reads else None
                return f"read by the front end{f' (line {line})' if line else ''}, {same_program}{literal}"

    # -- places --------------------------------------------------------------------------------------------------

    def _because(self, moves: Config) -> tuple[str, ...]:
        """The literals of the source that the configuration violates."""
        names = self.description.namespace(moves)
        names.setdefault("num_warps", self.inspection.options.get("num_warps", 4))
        return self._rule_texts([r for r in self.rules if violates(r, names)])

    def _rule_texts(self, rules: Sequence[LiteralRule]) -> tuple[str, ...]:
        """Each demand once, with all the lines that make it."""
        lines: dict[str, list[str]] = {}
        for rule in rules:
            line = self._line(rule.location)
            lines.setdefault(rule.text, []).extend([str(line)] if line else [])
        return tuple(f"{text} ({_lines(found)})" if found else text for text, found in lines.items())

    def _line(self, location: Location | None) -> int | None:
        return self.lines(location) if location else None

    def _declared(self, name: str) -> int | None:
        """Line of the file where the parameter is declared."""
        if name not in self.description.parameters:
            return None
        kernel = self.functions[0]
        definition = syntax.definition(kernel.source)
        if definition is None:
            return None
        arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
        declared = next((a for a in arguments if a.arg == name), None)
        return None if declared is None else self._line(code_lines.place(kernel, declared))

    def _repeat(self, moves: Config) -> str:
        settings = "".join(f" {quoted(n, v)}" for n, v in moves.items())
        return f"gluonmap repeat {shlex.quote(self.identity.map_path)}{settings}"


def _measured(answer: Answer) -> Measured | msgspec.UnsetType:
    """What the execution told, where it came to one."""
    if isinstance(answer, Verdict) and answer.stage.executes:
        return Measured(answer.stage, answer.check, answer.timing, answer.figures)
    return msgspec.UNSET


FORBIDDING = (Effect.ABORTING, Effect.CHANGES_RESULT)
"""Effects of values that a tuner must not choose."""


def classify(moved: Sequence[ValueMap]) -> KnobClass:
    """The class of a knob from the effects of its values other than the baseline."""
    effects = [v.effect for v in moved if v.effect is not Effect.UNKNOWN]
    if not effects:
        return KnobClass.UNKNOWN
    if all(e in FORBIDDING for e in effects):
        return KnobClass.PINNED if len(effects) == len(moved) else KnobClass.BOUNDED
    if any(e in FORBIDDING for e in effects):
        return KnobClass.BOUNDED
    if any(e in (Effect.LIVE, Effect.LIVE_HOST) for e in effects):
        return KnobClass.LIVE
    return KnobClass.INERT if len(effects) == len(moved) else KnobClass.UNKNOWN


def quoted(name: str, value: Value) -> str:
    """`NAME=VALUE` for a shell and for `--set`, which reads Python literals."""
    text = f"{name}={spelled(value)}"
    return text if all(c.isalnum() or c in "_=.-+*:/," for c in text) else "'" + text.replace("'", "'\\''") + "'"


def spelled(value: Value) -> str:
    """A value as it is typed on the command line, where Python literals are read."""
    return repr(value) if isinstance(value, str) and _reads_as_other(value) else str(value)


def _reads_as_other(text: str) -> bool:
    """True where the bare text would be read as a number, None, or nothing."""
    try:
        return not isinstance(ast.literal_eval(text), str)
    except (ValueError, SyntaxError):
        return text == ""


def violates(rule: LiteralRule, names: Mapping[str, Value]) -> bool:
    """Whether a configuration, with all that is derived from it, breaks a demand of the source."""
    try:
        return not expressions.evaluate(rule.expression, names)
    except UsageError:
        return False  # the rule speaks of something that this configuration does not have


def _difference(base: Program, other: Program) -> str:
    if base.code != other.code:
        return "instructions"
    # Without another descriptor it is what the launch brings: threads, dynamic shared memory, clusters.
    return "descriptor only" if base.descriptor != other.descriptor else "launch only"


def _lines(numbers: Sequence[str]) -> str:
    unique = list(dict.fromkeys(numbers))
    return f"line{'s' if len(unique) > 1 else ''} {', '.join(unique)}"


def _effects(values: Sequence[ValueMap]) -> str:
    return _listed(list(dict.fromkeys(v.effect.value for v in values)))


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" and {items[-1]}" if items else "the program"


def current_lines(inspection: Inspection, paths: Mapping[str, Path]) -> Lines:
    """Places of functions as lines of their files today; files that are gone keep the lines of the inspection."""
    texts = {name: syntax.text_of(path) for name, path in paths.items() if path.is_file()}
    functions = {(f.name, f.file): f for f in inspection.functions}

    def line(location: Location) -> int | None:
        function = functions.get((location.function, location.file))
        if location.file in texts:
            found = code_lines.absolute_line(texts[location.file], location, function.source if function else "")
            if found is not None:
                return found
        if function is None:
            return None
        return function.first_line + code_lines.physical_line(function.source, location.line) - 1

    return line
