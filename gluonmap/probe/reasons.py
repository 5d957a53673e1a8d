"""Wording of reasons: why a knob is of its class, and which demands of the source a configuration breaks."""

from __future__ import annotations

from collections.abc import Sequence

from gluonmap.model.candidate import Config
from gluonmap.model.inspection import FunctionSource, Inspection, LiteralRule
from gluonmap.model.knobs import Effect, KnobClass, KnobKind
from gluonmap.model.space_map import ValueMap
from gluonmap.model.verdict import Location
from gluonmap.probe.current_lines import Lines
from gluonmap.probe.effects import FORBIDDING
from gluonmap.probe.screen import demands, violates
from gluonmap.source import code_lines, syntax
from gluonmap.source.reads import find_reads
from gluonmap.spec.description import Description

_CHANGES = {
    "arguments": "the kernel's arguments",
    "descriptor only": "the kernel descriptor (registers, private memory)",
    "grid": "the grid",
    "instructions": "instructions",
    "launch only": "threads or shared memory of the launch",
}


class KnobReasons:
    """Reasons for classes of knobs and effects of values, from the demands of the source and its lines."""

    def __init__(self, description: Description, inspection: Inspection, lines: Lines) -> None:
        self.description, self.inspection = description, inspection
        self.functions: Sequence[FunctionSource] = inspection.functions
        self.demands = demands(inspection, description)
        self._lines = lines

    def why(self, name: str, kind: KnobKind, knob_class: KnobClass, moved: Sequence[ValueMap]) -> str:
        """Return one sentence on why the knob is of its class; `moved` are its values other than the baseline."""
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
        values = _listed([repr(v.value) for v in changing])
        rest = [v for v in moved if v not in changing]
        others = f"; {len(rest)} other{'s' if len(rest) > 1 else ''}: {_effects(rest)}" if rest else ""
        does = "changes" if len(changing) == 1 else "change"
        return f"part of the problem, not of the tuning: {values} {does} the numbers beyond rounding{others}"

    def _tied(self, name: str, failing: Sequence[ValueMap]) -> list[str]:
        """Return the other knobs of the demands that every failing value breaks."""
        turned = self.description.knobs
        found: list[str] = []
        for rule in self.demands:
            others = [k for k in rule.knobs if k != name and k in turned]
            if name in rule.knobs and others:
                moved = [self.description.namespace({name: v.value}) for v in failing]
                if all(violates(rule, names) for names in moved):
                    found += [k for k in others if k not in found]
        return found

    def _why_inert(self, name: str, kind: KnobKind) -> str:
        same_program = "identical program"
        reads = find_reads(self.functions, name) if kind is not KnobKind.OPTION else ()
        literals = [rule for rule in self.demands if rule.knobs == (name,) and rule.expression == "True"]
        literal = f"; {self.demand_texts(literals)[0]}" if literals else ""
        declared = self.declared_line(name)
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
                line = self.line(reads[0]) if reads else None
                return f"read by the front end{f' (line {line})' if line else ''}, {same_program}{literal}"

    def broken_demands(self, moves: Config) -> tuple[str, ...]:
        """Return the demands of the source that the baseline with `moves` breaks."""
        names = self.description.namespace(moves)
        names.setdefault("num_warps", self.inspection.options.get("num_warps", 4))
        return self.demand_texts([r for r in self.demands if violates(r, names)])

    def demand_texts(self, rules: Sequence[LiteralRule]) -> tuple[str, ...]:
        """Return each demand once, with the lines of all its places."""
        lines: dict[str, list[str]] = {}
        for rule in rules:
            line = self.line(rule.location)
            lines.setdefault(rule.text, []).extend([str(line)] if line else [])
        return tuple(f"{text} ({_lines(found)})" if found else text for text, found in lines.items())

    def line(self, location: Location | None) -> int | None:
        return self._lines(location) if location else None

    def declared_line(self, name: str) -> int | None:
        """Return the line of the file where the parameter is declared; None: it is no parameter."""
        if name not in self.description.parameters:
            return None
        kernel = self.functions[0]
        definition = syntax.definition(kernel.source)
        if definition is None:
            return None
        arguments = [*definition.args.posonlyargs, *definition.args.args, *definition.args.kwonlyargs]
        declared = next((a for a in arguments if a.arg == name), None)
        return None if declared is None else self.line(code_lines.place(kernel, declared))


def _lines(numbers: Sequence[str]) -> str:
    unique = list(dict.fromkeys(numbers))
    return f"line{'s' if len(unique) > 1 else ''} {', '.join(unique)}"


def _effects(values: Sequence[ValueMap]) -> str:
    return _listed(list(dict.fromkeys(v.effect.value for v in values)))


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + f" and {items[-1]}" if items else "the program"
