"""One run of everything: from a kernel file to the map of each target, stored."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import msgspec

from gluonmap.constraints import expressions
from gluonmap.model import codec, exitcode, targets
from gluonmap.model.candidate import Candidate, Config, Stage, Value, Watch
from gluonmap.model.errors import GluonmapError, OracleFault, UnknownKernel, UnknownKnob, UsageError
from gluonmap.model.events import Event, Listener, about
from gluonmap.model.inspection import Inspection, SourceFile
from gluonmap.model.joint_map import Joint
from gluonmap.model.knobs import KnobKind
from gluonmap.model.space_map import SpaceMap
from gluonmap.model.verdict import Answer, Fault, Outcome, Verdict, compiled, digest_of
from gluonmap.probe import execute_programs, repair_baseline, screen
from gluonmap.probe.joint_search import INTERRUPTED, Effort, Jointly
from gluonmap.probe.repair_baseline import Mended
from gluonmap.runner import diagnostics, journal
from gluonmap.runner import environment as installation
from gluonmap.runner.determinism import SecondOpinion
from gluonmap.runner.journal import Head, Journal
from gluonmap.runner.oracle import Oracle
from gluonmap.runner.processes import Ending, Isolation
from gluonmap.source import syntax, target_api
from gluonmap.spec import probe_file as probefile
from gluonmap.spec.description import Description, ExecutionRequest
from gluonmap.spec.description_builder import Overrides, describe
from gluonmap.spec.probe_file import RAGGED, RUN
from gluonmap.worker.protocol import Bench, Job, KernelFile, Limits

Result = TypeVar("Result")

IMPORT_DEADLINE_S = 120.0
LEAST_DEADLINE_S = 120.0
DEVICE_DEADLINE_S = 60.0
"""For inputs, launches, references and timing together; what goes on for longer does not come back."""
MODEL = "the CPU, by a model of the hardware"
"""In the place of a device's name."""
SEARCH_DEADLINE_S = 30.0
"""Of a change of a failing baseline, where the user names none: what takes longer is no default to start from."""
DEADLINE_PER_BASELINE = 30.0
"""A candidate may take this many times as long as the baseline's compile."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the command line decides about a run."""

    kernel_file: Path
    root: Path
    """Folder that gets `probes/` and `reports/`."""
    overrides: Overrides = field(default_factory=Overrides)
    config_file: str = ""
    probe_file: Path | None = None
    stubs: tuple[str, ...] = ()
    jobs: int = 2
    deadline_s: float | None = None
    memory_bytes: int = 0
    retry: bool = False
    """Ask again what had no answer in an earlier run."""
    afresh: bool = False
    """Use no answer of an earlier run."""
    effort: Effort = field(default_factory=Effort)
    """How much is asked about all knobs together."""
    stage: Stage = Stage.COMPILE
    """The last stage of baseline, single values and handed-over programs."""
    watch: Watch = Watch()
    """Of the stage RUN."""
    modules: tuple[str, ...] = ("torch",)
    """What servers import for candidates that are executed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A map and the file that holds it."""

    space: SpaceMap
    path: Path


@dataclass(frozen=True, slots=True)
class Opened:
    """A kernel on one target, ready to be asked about."""

    record: Journal
    head: Head
    probe: probefile.ProbeFile
    oracle: Oracle
    lines: screen.Lines


@dataclass(frozen=True, slots=True)
class Default:
    """What came of the search for a baseline that passes."""

    space: SpaceMap
    """Of the baseline alone, as it is; not stored."""
    mended: Mended | None
    """None: it passes."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One configuration that was compiled and executed on the CPU."""

    kernel: str
    target: str
    triton: str
    config: Config
    """Values of the knobs."""
    shape: dict[str, Value]
    """That the program was compiled for."""
    verdict: Verdict
    place: str
    """Where the reason points: "gemm.py:78"; empty: nowhere."""


class Interrupted(GluonmapError):
    """The user pressed Ctrl-C; what is known has been kept, and `stored` is its map if there is one."""

    exit_code = 130

    def __init__(self, text: str, stored: Stored | None = None) -> None:
        super().__init__(text)
        self.stored = stored


class Campaign:
    """One kernel file, probed on one target after the other with one base server."""

    def __init__(self, settings: Settings, isolation: Isolation, listen: Listener) -> None:
        self.settings, self.isolation, self.listen = settings, isolation, listen
        path = settings.kernel_file
        if not path.is_file() or path.suffix != ".py":
            what = "does not exist" if not path.exists() else "is a folder" if path.is_dir() else "is no .py file"
            raise UsageError(f"the kernel file {path} {what}. Give the Python file that holds the kernel.")
        self.path = Path(os.path.abspath(path))
        self.triton_folder = installation.triton_folder()
        self.triton = installation.triton_version(self.triton_folder)
        self._identity = installation.identity(self.triton_folder)
        self.device_name = ""
        """Of this machine's GPU, where one was looked for."""

    # -- which targets -------------------------------------------------------------------------------------------

    def default_targets(self) -> list[targets.Target]:
        """This machine's device if it has one, else every target that the kernel's API allows."""
        if self.settings.stage is not Stage.RUN and (device := self._device()):
            return [device]
        if self.settings.stage.on_device:
            raise UsageError(self._no_device(""))
        probe = self._probe("")
        inspection = self._any_inspection(probe)
        excluded = {n: _lacks(n, use, None) for n, use in self._excluded(inspection).items()}
        for target in self._meant_for_successors(inspection):
            reason = f"the kernel is written with {target.predates_api}'s API (--target {target.name} tries it)"
            excluded.setdefault(target.name, reason)
        wanted = probe.targets or tuple(t.name for t in targets.TARGETS)
        if self.settings.stage is Stage.RUN:
            modelled = targets.executed_on_cpu()
            reason = f"--stage run executes code of {' and '.join(modelled)} only"
            excluded |= {name: reason for name in wanted if name not in modelled}
        for name in wanted:
            if name in excluded:
                self.listen(Event("note", f"{name} is left out: {excluded[name]}"))
        return [targets.find(name) for name in wanted if name not in excluded]

    def declared_targets(self) -> tuple[str, ...]:
        """The targets of the probe file's TARGETS; none: it names none, or there is no such file."""
        return tuple(targets.find(name).name for name in self._probe("").targets)

    def _any_inspection(self, probe: probefile.ProbeFile) -> Inspection:
        """What the kernel's file holds, from the journal of any target that is up to date, else from a child."""
        for target in targets.TARGETS:
            path = self._journal_path(target)
            if path.is_file():
                # Another process may have it: then a child tells.
                with contextlib.suppress(UsageError), Journal(path) as record:
                    if head := self._current_head(record, target, self.settings.overrides.kernel or probe.kernel):
                        return head.inspection
        return self._inspect(targets.TARGETS[0], probe)[0]

    def _device(self) -> targets.Target | None:
        name, self.device_name = self.find_device()
        with contextlib.suppress(UsageError):
            return targets.find(name) if name else None
        return None

    def find_device(self) -> tuple[str, str]:
        """Target and name of this machine's GPU; empty where there is none. Another child finds them."""
        if not any(Path(p).exists() for p in ("/dev/kfd", "/dev/nvidia0", "/dev/dxg")):
            return "", ""
        ending = self.isolation.ask(Job("device", targets.TARGETS[0].name), Limits(IMPORT_DEADLINE_S, 0))
        return (ending.evidence.device, ending.evidence.device_name) if ending.evidence else ("", "")

    def demand_device(self, wanted: Sequence[targets.Target]) -> None:
        """Refuse a stage that this machine has nothing for, before anything is compiled.

        Raises:
            UsageError: SKIPPED, and what to do instead.
        """
        if self.settings.stage is Stage.RUN:
            self._demand_model(wanted)
        if not self.settings.stage.on_device:
            return
        found = self._device()
        for target in wanted:
            if found is None or target.name != found.name:
                raise UsageError(self._no_device(target.name, found.name if found else ""))

    def _no_device(self, target: str, found: str = "") -> str:
        """Why nothing can be launched: one sentence for whoever sits before another machine."""
        stage = self.settings.stage.value.lower()
        here = f"this machine's is {found}" if found else "this machine has none that Triton and torch can use"
        if importlib.util.find_spec("torch") is None and not found:
            here = "torch, which launches, is not installed here (pip install 'gluonmap[gpu]')"
        return (
            f"SKIPPED: --stage {stage} runs the kernel on a{f' {target}' if target else ''} GPU, and {here}. "
            "Nothing was asked. A map of compiles needs no GPU: leave --stage out."
        )

    def _demand_model(self, wanted: Sequence[targets.Target]) -> None:
        for target in wanted:
            if not target.executed_on_cpu:
                modelled = " and ".join(targets.executed_on_cpu())
                raise UsageError(f"SKIPPED: --stage run executes code of {modelled}, not of {target.name}.")
        if importlib.util.find_spec("torch") is None:
            raise UsageError(
                "SKIPPED: the probe file makes its inputs with torch, which is not installed here. No GPU is needed: "
                "a torch made for CPUs will do."
            )

    def _execution_request(self, probe: probefile.ProbeFile) -> ExecutionRequest | None:
        """What candidates need beyond the compile, where a stage there is asked for.

        Raises:
            UsageError: the probe file that a launch needs is missing, or lacks a function.
        """
        stage = self.settings.stage
        if not stage.executes:
            return None
        needed = ("inputs",) if stage in (Stage.RUN, Stage.LAUNCH) else ("inputs", "reference")
        missing = [name for name in needed if name not in probe.functions]
        if missing:
            what = " and ".join(
                {"inputs": "inputs(shape, config, device, seed)"}.get(n, f"{n}(inputs, shape)") for n in missing
            )
            where = probe.path or f"probes/{probefile.below_kernels(self.path)}"
            raise UsageError(
                f"SKIPPED: --stage {stage.value.lower()} needs {what} in the probe file {where} (docs/probe-files.md)."
            )
        regime = self.settings.overrides.regime or next(iter(probe.shapes), "")
        if stage is Stage.RUN:
            # "default" is the regime that was compiled, whatever another one is called.
            others = {n: dict(shape) for n, shape in probe.shapes.items() if n not in (regime, RUN, "default")}
            run = {RUN: dict(probe.shapes[RUN])} if RUN in probe.shapes else {}
            shapes = {**run, "default": {}, **others}
            known = "reference" in probe.functions
            judged = codec.digest([probe.tree, installation.model_identity()])
            return ExecutionRequest(
                stage, MODEL, judged, probe.tolerance, shapes=shapes, reference=known, watch=self.settings.watch
            )
        ragged = probe.shapes.get(RAGGED, {}) if stage is not Stage.LAUNCH and regime != RAGGED else {}
        return ExecutionRequest(stage, self.device_name, probe.tree, probe.tolerance, dict(ragged))

    def _excluded(self, inspection: Inspection) -> dict[str, target_api.ApiUse]:
        return target_api.excluded_targets(self._apis(inspection))

    def _meant_for_successors(self, inspection: Inspection) -> list[targets.Target]:
        """Return the targets whose next generation's API the kernel calls."""
        modules = {use.api.partition(".")[0] for use in self._apis(inspection) if "." in use.api}
        return [target for target in targets.TARGETS if target.predates_api in modules]

    def _apis(self, inspection: Inspection) -> tuple[target_api.ApiUse, ...]:
        texts = {n: syntax.text_of(p) for n, p in self._paths(inspection, "").items() if p.is_file()}
        return target_api.find_api_uses(inspection.functions, texts)

    # -- one target ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def opened(self, target: targets.Target) -> Iterator[Opened]:
        """The kernel's journal, inspection and oracle on `target`.

        Raises:
            UsageError: the file cannot be imported, holds no such kernel, or another process has the journal.
        """
        probe = self._probe(target.name)
        with Journal(self._journal_path(target)) as record:
            if record.damaged:
                lines = ", ".join(map(str, record.damaged[:5]))
                self.listen(
                    Event("note", f"{record.path}: damaged lines {lines} are ignored; their candidates are asked again")
                )
            head = self._head(record, target, probe)
            current = screen.current_lines(head.inspection, self._paths(head.inspection, head.folder))
            yield Opened(record, head, probe, self._oracle(record, head, probe.path), current)

    def probe(self, target: targets.Target) -> Stored:
        """The map of the kernel on `target`, stored.

        Raises:
            Interrupted: Ctrl-C; the map of what is known has been stored.
        """
        with self.opened(target) as kernel:
            record, head, probe = kernel.record, kernel.head, kernel.probe
            inspection = head.inspection
            description = describe(inspection, target, probe, self._overrides(probe))
            beyond = self._execution_request(probe)
            if beyond and not description.grid:
                raise UsageError("a launch needs its grid: give it with --grid, or as GRID in the probe file.")
            compiles, description = description, dataclasses.replace(description, execution=beyond)
            if note := description.second_tile_note():
                description = dataclasses.replace(description, notes=(*description.notes, note))
            oracle = kernel.oracle
            answers: dict[str, Answer] = {}
            jointly = self._jointly(oracle, head, compiles, probe.restrict)
            joint: Joint | None = None
            interrupted = False
            try:
                with SecondOpinion(oracle, record, self.settings.jobs, self.listen) as second:
                    if self._baseline(oracle, description, answers, second):
                        self._singles(oracle, description, answers)
                        second.confirm(_alike(description, answers))
                        if jointly is not None:
                            torn = any(
                                record.stability(head.stamp, journal.compile_key(candidate)) is False
                                for candidate in _planned(description)
                            )  # one value of unstable code, and no equal programs prove anything beside it
                            if problem := screen.changing(description, answers):
                                restrict = (*probe.restrict, *screen.without(problem))
                                jointly = self._jointly(oracle, head, compiles, restrict)
                                assert jointly
                            joint = jointly.run(_as_compiles(description, answers), stable=not torn)
                            if beyond and joint.stopped != INTERRUPTED:
                                failing = screen.failing(description, answers)
                                joint = execute_programs.taken(joint, oracle, description, self.listen, failing)
                            if problem:
                                joint = msgspec.structs.replace(joint, notes=(*joint.notes, _left_out(problem)))
                            interrupted = joint.stopped == INTERRUPTED
            except KeyboardInterrupt:
                interrupted = True
                for candidate in _planned(description):
                    # An answer gets to the journal first: it may be there and not yet here.
                    if (answer := oracle.known(candidate)) is not None:
                        answers[journal.key_of(candidate)] = answer
            key = journal.key_of(description.candidate({}))
            compiled = [journal.compile_key(c) for c in _planned(description)]
            if key not in answers:
                raise Interrupted("interrupted before the baseline had an answer; nothing is known yet.")
            space = screen.fold(
                description,
                inspection,
                self._identity_of(head, target, probe.path),
                answers,
                {k: same for k in compiled if (same := record.stability(head.stamp, k)) is not None},
                kernel.lines,
            )
        space = msgspec.structs.replace(self._refused(space, inspection, target), joint=joint)
        if joint is not None:
            space = msgspec.structs.replace(space, joint=execute_programs.settled(joint, space))
        stored = Stored(space, self.map_path(target, inspection))
        self._note_what_is_replaced(stored)
        codec.write(stored.path, codec.dumps(space))
        if interrupted:
            left = "what is known of all knobs together is in the map" if joint else "not all was asked"
            raise Interrupted(
                f"interrupted: {space.unanswered} candidates were not asked."
                if space.unanswered
                else f"interrupted: {left}; the same command goes on from there.",
                stored,
            )
        return stored

    def execute(self, target: targets.Target, sizes: Mapping[str, Value], trace: Path | None) -> Ran:
        """What comes of the baseline on the CPU. No journal is read or written: a probe may be running.

        `sizes`: instead of small ones. `trace`: a file that is to tell every instruction.

        Raises:
            OracleFault: it has no answer.
            UsageError: there is nothing to execute it with.
        """
        probe = self._probe(target.name)
        beyond = self._execution_request(probe)
        assert beyond
        inspection, _ = self._inspect(target, probe)
        description = describe(inspection, target, probe, self._overrides(probe))
        if not description.grid:
            raise UsageError("a launch needs its grid: give it with --grid, or as GRID in the probe file.")
        sized = {*description.shape, *(n for n, p in description.parameters.items() if not p.constexpr)}
        if unknown := next((name for name in sizes if name not in sized), ""):
            raise UnknownKnob(f"kernel {inspection.kernel!r}", unknown, sized, "--shape takes sizes of SHAPES.")
        if sizes:
            beyond = dataclasses.replace(beyond, shapes={RUN: {**description.shape, **sizes}})
        description = dataclasses.replace(description, execution=beyond)
        if note := description.second_tile_note():
            self.listen(Event("note", note))
        candidate = description.candidate({})
        file = KernelFile(str(self.path), inspection.kernel, self.settings.stubs)
        bench = Bench(os.path.abspath(probe.path), "", str(trace.absolute()) if trace else "")
        self.listen(Event("plan", "compile and run", 1))
        limits = self._limits(self.settings.deadline_s or LEAST_DEADLINE_S)
        ending = self.isolation.ask(Job("compile", target.name, file, candidate, bench=bench), limits)
        answer = diagnostics.answer(ending, inspection.functions, limits.deadline_s, candidate.stage)
        if not isinstance(answer, Verdict):
            raise OracleFault(f"there is no answer: {answer.text}.")
        self.listen(Event("answer", answer=answer))
        where = answer.reason.location if answer.reason else None
        line = screen.current_lines(inspection, self._paths(inspection, ""))(where) if where else None
        place = f"{Path(where.file).name}:{line}" if where and line else ""
        return Ran(inspection.kernel, target.name, self.triton, description.baseline, description.shape, answer, place)

    def find_default(self, target: targets.Target, budget: int) -> Default:
        """The smallest change of the baseline that passes on `target`, where it fails; `budget` compiles at most.

        Raises:
            OracleFault: the baseline has no answer.
            UsageError: a restriction that has no value.
        """
        with self.opened(target) as kernel:
            head, probe, inspection = kernel.head, kernel.probe, kernel.head.inspection
            description = describe(inspection, target, probe, self._overrides(probe))
            oracle = self._oracle(kernel.record, head, "")
            candidate = description.candidate({})
            answers = self._asked(oracle, [candidate], "baseline")
            base = answers[journal.key_of(candidate)]
            if not isinstance(base, Verdict):
                raise OracleFault(f"the baseline has no answer: {base.text}.")
            mended: Mended | None = None
            if base.outcome is not Outcome.PASS:
                oracle.loadable = False  # no server can have loaded a kernel whose baseline fails
                oracle.prepare(candidate)
                if self.settings.deadline_s is None:
                    oracle.limits = self._limits(SEARCH_DEADLINE_S)
                lacking = target.name in self._excluded(inspection)  # what the target lacks no knob brings
                ground = self._ground(inspection, description, probe.restrict)
                self.listen(Event("plan", "changes at most to compile", 0 if lacking else budget))
                mended = repair_baseline.search(
                    ground, base, self._asking(oracle, description), 0 if lacking else budget
                )
            identity = self._identity_of(head, target, probe.path)
            space = screen.fold(description, inspection, identity, answers, {}, kernel.lines)
        return Default(self._refused(space, inspection, target), mended)

    def _ground(
        self, inspection: Inspection, description: Description, demanded: Sequence[str]
    ) -> repair_baseline.Ground:
        """Where a change of the baseline is looked for; `demanded` by the probe file."""
        restrict = (*demanded, *self.settings.effort.restrict)
        for text in restrict:
            expressions.evaluate(text, description.namespace({}))
        knobs = {n: k for n, k in description.knobs.items() if k.kind is not KnobKind.HOST}

        def names(moves: Config) -> dict[str, Value]:
            try:
                found = description.namespace(moves)
            except UsageError:  # host code cannot compute a value: no expression speaks of this configuration
                return {}
            found.setdefault("num_warps", inspection.options.get("num_warps", 4))
            return found

        return repair_baseline.Ground(
            target=description.target,
            baseline={n: k.baseline for n, k in knobs.items()},
            domains={n: k.domain for n, k in knobs.items()},
            names=names,
            depends={n: _behind(n, description.derive) for n in description.derive},
            demands=screen.demands(inspection, description),
            restrict=restrict,
        )

    def _asking(self, oracle: Oracle, description: Description) -> repair_baseline.Ask:
        def ask(batch: Sequence[Config]) -> list[Answer]:
            candidates: list[Candidate | Fault] = []
            for moves in batch:
                try:
                    candidates.append(description.candidate(moves))
                except UsageError as error:  # host code cannot compute its arguments: no question, so no answer
                    candidates.append(Fault(str(error)))
            answers = self._asked(oracle, [c for c in candidates if isinstance(c, Candidate)])
            return [c if isinstance(c, Fault) else answers[journal.key_of(c)] for c in candidates]

        return ask

    def _asked(self, oracle: Oracle, candidates: Sequence[Candidate], plan: str = "") -> dict[str, Answer]:
        """Answers by candidate key, each told as it comes; `plan` names what is asked, if it is a plan of its own."""
        if plan:
            known = sum(1 for c in candidates if oracle.known(c) is not None)
            self.listen(Event("plan", plan, len(candidates), known))
        answers: dict[str, Answer] = {}
        for asked in oracle.ask(candidates):
            answers[journal.key_of(asked.candidate)] = asked.answer
            if asked.fresh or not plan:
                self.listen(Event("answer" if asked.fresh else "known", answer=asked.answer))
        return answers

    def _probe(self, target: str) -> probefile.ProbeFile:
        path = self.settings.probe_file or probefile.find_probe(self.path, self.settings.root)
        if path is None:
            return probefile.ProbeFile()
        probe = probefile.read_probe(path, target)
        if target and probe.targets and target not in probe.targets:
            self.listen(Event("note", f"{path} is written for {', '.join(probe.targets)}, not for {target}"))
        return probe.for_kernel(self.settings.overrides.kernel or probe.kernel)

    def _overrides(self, probe: probefile.ProbeFile) -> Overrides:
        overrides = self.settings.overrides
        if not self.settings.config_file:
            return overrides
        sizes = {n: v for shape in list(probe.shapes.values())[:1] for n, v in shape.items()} | overrides.args
        config, entry = probefile.read_config(self.settings.config_file, sizes)
        name = self.settings.config_file.partition("#")[0] + (f"#{entry}" if entry else "")
        return dataclasses.replace(overrides, config=config, config_name=Path(name).name)

    def _oracle(self, record: Journal, head: Head, probe_file: str) -> Oracle:
        deadline = self.settings.deadline_s or LEAST_DEADLINE_S
        return Oracle(
            journal=record,
            isolation=self.isolation,
            stamp=head.stamp,
            file=KernelFile(str(self.path), head.inspection.kernel, self.settings.stubs),
            target=head.target,
            functions=head.inspection.functions,
            limits=self._limits(deadline),
            loadable=head.inspection.quiet,
            retry=self.settings.retry,
            afresh=self.settings.afresh,
            probe_file=os.path.abspath(probe_file) if probe_file else "",
        )

    def _limits(self, deadline_s: float) -> Limits:
        """On a device the deadline that the user names counts anew; the time before has nothing to do with it."""
        return Limits(deadline_s, self.settings.memory_bytes, self.settings.deadline_s or DEVICE_DEADLINE_S)

    def _jointly(self, oracle: Oracle, head: Head, description: Description, demanded: Sequence[str]) -> Jointly | None:
        """What asks about all knobs together, where that is wanted; `demanded` by the probe file.

        Raises:
            UsageError: a restriction that says nothing here, or that the baseline breaks.
        """
        effort = self.settings.effort
        effort = dataclasses.replace(effort, restrict=(*demanded, *effort.restrict))
        if effort.depth == "singles" or not description.knobs:
            return None
        lines = screen.current_lines(head.inspection, self._paths(head.inspection, head.folder))
        demands, unread = screen.demands(head.inspection, description), screen.unread(head.inspection, description)
        return Jointly(oracle, description, demands, effort, lines, self.listen, unread)

    def _baseline(
        self, oracle: Oracle, description: Description, answers: dict[str, Answer], second: SecondOpinion
    ) -> bool:
        """Ask the baseline, and compile it again under another hash seed; False where it does not pass."""
        candidate = description.candidate({})
        key = journal.key_of(candidate)
        second.start_for(candidate)
        self.listen(Event("plan", "baseline", 1, int(oracle.known(candidate) is not None)))
        for asked in oracle.ask([candidate]):
            answers[key] = asked.answer
            if asked.fresh:
                self.listen(Event("answer", answer=asked.answer))
        answer = answers[key]
        if not isinstance(answer, Verdict):
            raise OracleFault(f"the baseline has no answer: {answer.text}.")
        if not compiled(answer):
            return False
        if self.settings.deadline_s is None:
            deadline = max(LEAST_DEADLINE_S, DEADLINE_PER_BASELINE * answer.seconds)
            oracle.limits = self._limits(deadline)
        oracle.prepare(candidate)
        second.confirm([candidate])
        return True

    def _singles(self, oracle: Oracle, description: Description, answers: dict[str, Answer]) -> None:
        candidates = {journal.key_of(c): c for c in screen.singles(description).values()}
        known = sum(1 for c in candidates.values() if oracle.known(c) is not None)
        self.listen(Event("plan", "values to compile", len(candidates), known))
        for asked in oracle.ask(candidates.values()):
            answers[journal.key_of(asked.candidate)] = asked.answer
            if asked.fresh:
                self.listen(Event("answer", answer=asked.answer))

    # -- what the file says --------------------------------------------------------------------------------------

    def _head(self, record: Journal, target: targets.Target, probe: probefile.ProbeFile) -> Head:
        """The journal's head for today's circumstances: an earlier one if nothing has changed, else a new one."""
        kernel = self.settings.overrides.kernel or probe.kernel
        head = self._current_head(record, target, kernel)
        if head is None and not record.heads:
            for other in sorted(self.settings.root.glob(f"probes/**/{self.path.stem}/{target.name}.jsonl")):
                if other != record.path and self._written_for_this_file(other):
                    record.adopt(other)
                    head = self._current_head(record, target, kernel)
                    break
        if head is not None:
            return head
        inspection, environment = self._inspect(target, probe)
        head = Head(
            stamp=journal.stamp_of(
                inspection.kernel,
                _named(inspection.files, self.path.parent),
                target.name,
                self._identity,
                environment,
                self.settings.stubs,
            ),
            target=target.name,
            triton=self.triton,
            installation=self._identity,
            environment=environment,
            stubs=self.settings.stubs,
            inspection=inspection,
            folder=str(self.path.parent),
        )
        record.write(head)
        return head

    def _current_head(self, record: Journal, target: targets.Target, kernel: str) -> Head | None:
        """The newest head whose circumstances hold today."""
        for head in reversed(record.heads):
            inspection = head.inspection
            if (
                head.target == target.name
                and (inspection.kernel == kernel if kernel else inspection.entries == (inspection.kernel,))
                and head.installation == self._identity
                and head.environment == installation.environment()
                and head.stubs == self.settings.stubs
                and any(Path(f.path).name == self.path.name for f in inspection.files)
                and all(_unchanged(f, _rebased(f.path, head.folder, self.path.parent)) for f in inspection.files)
            ):
                return head
        return None

    def _written_for_this_file(self, path: Path) -> bool:
        """True where another journal's kernel has this file's name and code."""
        tree = syntax.tree_hash(self.path.read_bytes())
        try:
            lines = path.read_bytes().splitlines()
            heads = [msgspec.json.decode(line, type=Head) for line in lines if b'"type":"head"' in line[:40]]
        except (OSError, msgspec.DecodeError):
            return False
        return any(Path(f.path).name == self.path.name and f.ast == tree for h in heads for f in h.inspection.files)

    def _inspect(self, target: targets.Target, probe: probefile.ProbeFile) -> tuple[Inspection, dict[str, str]]:
        """Import the kernel's file in a child and read what it holds.

        Raises:
            UsageError: it cannot be imported, or holds no such kernel.
        """
        kernel = self.settings.overrides.kernel or probe.kernel
        job = Job("inspect", target.name, KernelFile(str(self.path), kernel, self.settings.stubs))
        deadline = min(self.settings.deadline_s or IMPORT_DEADLINE_S, IMPORT_DEADLINE_S)
        ending = self.isolation.ask(job, Limits(deadline, self.settings.memory_bytes))
        if ending.status == 0 and ending.evidence and ending.evidence.inspection:
            return ending.evidence.inspection, installation.environment()
        raise self._import_error(ending, kernel, deadline)

    def _import_error(self, ending: Ending, kernel: str, deadline_s: float) -> UsageError:
        file = self.settings.kernel_file
        evidence = ending.evidence
        if ending.lost:
            raise OracleFault("the fork server was lost while it imported the kernel's file.")
        if evidence and evidence.reason and evidence.reason.kind == "KernelNotFound":
            names = evidence.reason.text.split("\n") if evidence.reason.text else []
            if kernel:
                return UnknownKernel(str(file), kernel, names, "--kernel NAME chooses one.")
            if not names:
                return UsageError(f"{file} holds no @gluon.jit or @triton.jit function.")
            return UsageError(
                f"{file} holds {len(names)} kernels: choose one with --kernel {names[0]} (or {', '.join(names[1:])})."
            )
        if evidence and evidence.reason:
            reason = evidence.reason
            place = f" (line {evidence.line})" if evidence.line and Path(evidence.file) == self.path else ""
            advice = ""
            if reason.kind == "ModuleNotFoundError":
                module = reason.text.split("'")[1].partition(".")[0] if "'" in reason.text else "PACKAGE"
                given = module in self.settings.stubs
                advice = "\n  Install it here" + ("." if given else f", or stand in for it: --stub {module}")
            elif (
                (package := self._package())
                and package not in self.settings.stubs
                and reason.kind not in ("SyntaxError", "StandInUsed")
            ):
                advice = f"\n  If the __init__ of {package} cannot run here, leave it out: --stub {package}"
            return UsageError(
                f"{file} cannot be imported: {reason.kind}: {diagnostics.tidy(reason.text)}{place}{advice}"
            )
        if ending.hung:
            return UsageError(f"{file} cannot be imported: its import did not end within {deadline_s:g} s.")
        return UsageError(
            f"{file} cannot be imported: its import ended the process ({_how_it_ended(ending.status)})."
            "\n  A kernel file must import without side effects; guard its scripts with if __name__ == '__main__'."
        )

    def _package(self) -> str:
        """The topmost package that holds the kernel's file."""
        top = ""
        for parent in self.path.parents:
            if (parent / "__init__.py").is_file():
                top = parent.name
        return top

    def _paths(self, inspection: Inspection, folder: str) -> dict[str, Path]:
        """Where the functions' files lie today."""
        found: dict[str, Path] = {}
        for function in inspection.functions:
            parts = Path(function.file).parts
            for file in inspection.files:
                if Path(file.path).parts[-len(parts) :] == parts:
                    found[function.file] = _rebased(file.path, folder, self.path.parent)
        return found

    # -- what comes out ------------------------------------------------------------------------------------------

    def _refused(self, space: SpaceMap, inspection: Inspection, target: targets.Target) -> SpaceMap:
        """Name the API that the target lacks, where the baseline's failure confirms what the source says."""
        if space.outcome == Outcome.PASS:
            return space
        use = self._excluded(inspection).get(target.name)
        if use is None:
            if target in self._meant_for_successors(inspection):
                api = target.predates_api
                step = f"the kernel is written with {api}'s API: probe it there with --target {api}"
                return msgspec.structs.replace(space, next_step=step)
            return space
        lines = screen.current_lines(inspection, self._paths(inspection, ""))
        allowed = ", ".join(self._allowed(inspection)) or "none of the known ones"
        step = f"probe it where the API exists: --target {allowed}"
        text = f"{_lacks(target.name, use, lines(use.location))}; the compile confirms it: {space.reason}"
        return msgspec.structs.replace(space, reason=text, next_step=step)

    def _allowed(self, inspection: Inspection) -> list[str]:
        excluded = self._excluded(inspection)
        return [t.name for t in targets.TARGETS if t.name not in excluded]

    def _note_what_is_replaced(self, stored: Stored) -> None:
        """Tell where a map of something else is written over."""
        try:
            old = codec.read_map(stored.path)
        except UsageError:
            return
        new = stored.space
        pairs = {
            "kernel": (f"{old.file}:{old.kernel}", f"{new.file}:{new.kernel}"),
            "Triton": (old.triton, new.triton),
            "shape": (old.shape, new.shape),
            "outcome of the baseline": (old.outcome, new.outcome),
        }
        for what, (before, after) in pairs.items():
            if before != after:
                text = f"{_shown(stored.path)} replaces a map of another {what} ({before} before, {after} now)"
                self.listen(Event("note", f"{text}; --out DIR keeps both"))
                return
        if old.on_device and not new.on_device:
            stage = old.on_device.stage.value.lower()
            text = f"{_shown(stored.path)} knew what executions told (--stage {stage}), and now compiles only"
            self.listen(Event("note", f"{text}; --out DIR keeps both"))
            return
        if old.joint is not None and new.joint is None:
            text = f"{_shown(stored.path)} knew all knobs together, and now knows single values only"
            self.listen(Event("note", f"{text}; without --depth singles it is as it was, and little is asked again"))

    def _journal_path(self, target: targets.Target) -> Path:
        below = probefile.below_kernels(self.path).with_suffix("")
        return self.settings.root / "probes" / below / f"{target.name}.jsonl"

    def map_path(self, target: targets.Target, inspection: Inspection) -> Path:
        """Where the map is stored. The kernel's name joins in where the file has several to choose from."""
        below = probefile.below_kernels(self.path).with_suffix("")
        name = below.name if inspection.entries == (inspection.kernel,) else f"{below.name}.{inspection.kernel}"
        return self.settings.root / "reports" / below.with_name(f"{name}.{target.name}.json")

    def _identity_of(self, head: Head, target: targets.Target, probe_file: str) -> screen.Identity:
        inspection = head.inspection
        return screen.Identity(
            file=_shown(self.path),
            triton=self.triton,
            stubs=self.settings.stubs,
            map_path=_shown(self.map_path(target, inspection)),
            probe_file=_shown(Path(probe_file)) if probe_file else "",
            source={file.path: file.ast for file in _named(inspection.files, Path(head.folder))},
        )


def _left_out(problem: Mapping[str, Sequence[Value]]) -> str:
    told = "; ".join(f"{name}: {', '.join(map(repr, values))}" for name, values in problem.items())
    return f"values that change the result are part of the problem, and were left out: {told}"


def _behind(name: str, derive: Mapping[str, str]) -> frozenset[str]:
    """The names that a derived value is computed from, those behind other derived ones too."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for other in expressions.names_in(derive.get(waiting.pop(), "0")) - found:
            found.add(other)
            waiting.append(other)
    return frozenset(found)


def _alike(description: Description, answers: Mapping[str, Answer]) -> list[Candidate]:
    """The passing singles whose program is the baseline's."""
    base = digest_of(answers[journal.key_of(description.candidate({}))])
    found = [(c, answers.get(journal.key_of(c))) for c in screen.singles(description).values()]
    return [c for c, answer in found if base and compiled(answer) and digest_of(answer) == base]


def _as_compiles(description: Description, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers of baseline and singles as far as they are answers to a compile, by the compile's key."""
    return {
        journal.compile_key(c): execute_programs.as_compile(answers[journal.key_of(c)])
        for c in _planned(description)
        if journal.key_of(c) in answers
    }


def _planned(description: Description) -> list[Candidate]:
    """The baseline and all moves of one knob."""
    return [description.candidate({}), *screen.singles(description).values()]


def _how_it_ended(status: int) -> str:
    return exitcode.signal_name(status) or f"exit status {status}"


def _lacks(target: str, use: target_api.ApiUse, line: int | None) -> str:
    where = f" (line {line})" if line else ""
    return f"the kernel uses {use.api}{where}, which {target} lacks"


def _named(files: Sequence[SourceFile], folder: Path) -> tuple[SourceFile, ...]:
    """The files by names that do not change when the kernel's folder moves."""

    def name(path: Path) -> str:
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else "/".join(path.parts[-3:])

    return tuple(SourceFile(name(Path(f.path)), f.ast) for f in files)


def _unchanged(file: SourceFile, path: Path) -> bool:
    try:
        return syntax.tree_hash(path.read_bytes()) == file.ast
    except OSError:
        return False


def _rebased(path: str, old_folder: str, new_folder: Path) -> Path:
    """Where a file lies now that the kernel's folder has moved from `old_folder` to `new_folder`."""
    if old_folder and Path(path).is_relative_to(old_folder):
        return new_folder / Path(path).relative_to(old_folder)
    return Path(path)


def _shown(path: Path) -> str:
    """The path as a user standing here would type it."""
    with contextlib.suppress(ValueError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


def run(settings: Settings, wanted: Sequence[str], listen: Listener) -> Iterator[Stored]:
    """The maps of all wanted targets (names or aliases), one after the other; none named: the default ones."""
    return _each(settings, wanted, listen, Campaign.probe)


def defaults(settings: Settings, wanted: Sequence[str], listen: Listener, budget: int) -> Iterator[Default]:
    """The smallest changes of a failing baseline that pass, on all wanted targets as for `run`."""
    return _each(settings, wanted, listen, lambda campaign, target: campaign.find_default(target, budget))


def executed(
    settings: Settings, wanted: Sequence[str], listen: Listener, sizes: Mapping[str, Value], trace: Path | None
) -> Iterator[Ran]:
    """What comes of one configuration on all wanted targets as for `run`, executed on the CPU; see `Campaign.execute`.

    `settings.stage` is RUN.
    """
    return _each(settings, wanted, listen, lambda campaign, target: campaign.execute(target, sizes, trace))


def _each(
    settings: Settings, wanted: Sequence[str], listen: Listener, do: Callable[[Campaign, targets.Target], Result]
) -> Iterator[Result]:
    modules = settings.modules if settings.stage.executes else ()
    with Isolation(jobs=settings.jobs, modules=modules) as isolation:
        campaign = Campaign(settings, isolation, listen)
        chosen = [targets.find(name) for name in wanted]
        campaign.demand_device(chosen)
        chosen = chosen or campaign.default_targets()
        names = list(dict.fromkeys(t.name for t in chosen))
        for target in names:
            if len(names) > 1:
                campaign.listen = about(target, listen)
            yield do(campaign, targets.find(target))


def of_this_device(settings: Settings, listen: Listener) -> Stored:
    """The map of the kernel on this machine's device, compiled where its journal does not know the answers.

    Raises:
        UsageError: there is no device here that gluonmap knows.
    """
    with Isolation(jobs=settings.jobs, modules=settings.modules) as isolation:
        campaign = Campaign(settings, isolation, listen)
        if (target := campaign._device()) is None:
            raise UsageError(
                "a race needs a GPU that torch and Triton can use, and this machine has none. "
                "A map of compiles needs none: gluonmap probe KERNEL."
            )
        return campaign.probe(target)


def default_jobs() -> int:
    return len(os.sched_getaffinity(0))


def default_memory_bytes(jobs: int) -> int:
    """Its share of the machine's memory for each child that runs at once, 8 GiB at least."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(8 << 30, total // jobs)
