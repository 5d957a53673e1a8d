"""The text of a stand-alone script: a kernel, one call of it that fails and one that passes, and how it is compiled."""

from __future__ import annotations

import ast
import builtins
import json
import platform
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gluonmap import __version__
from gluonmap.model import dtypes, targets
from gluonmap.model.candidate import Candidate, Value
from gluonmap.model.errors import UsageError
from gluonmap.model.outcomes import Outcome
from gluonmap.model.verdict import Verdict
from gluonmap.report.plain_text import visible
from gluonmap.repro.inline import Inlined, inline

_PYTHON_VALUE = "py:"
_WIDTH = 110
_TAKEN = ("grid", "warmup")
"""Names of arguments that Triton's `warmup` takes in addition to the kernel's own."""


class RecordedFailure(msgspec.Struct, frozen=True):
    """A failing call, and the nearest call that passes."""

    file: Path
    """File of the kernel."""
    shown: str
    """The path as the reader of the script sees it."""
    kernel: str
    triton: str
    failing: Candidate
    verdict: Verdict
    line: str
    """The line of the kernel's source that the failure points to: "file.py:112"."""
    passing: Candidate | None
    deadline_s: float
    environment: dict[str, str] = {}
    """Environment variables that change the compiled code."""


def render(failure: RecordedFailure) -> str:
    """Return the script. Without an argument it exits 1 if the failure is still there, 0 if it is gone, else 125.

    Raises:
        UsageError: a compile alone does not show the failure, or a definition cannot be copied.
    """
    outcome, kind = _recorded(failure.verdict)
    calls = [failure.failing] if failure.passing is None else [failure.failing, failure.passing]
    written = [_written(call) for call in calls]
    if taken := [name for name in _TAKEN if name in written[0]]:
        raise UsageError(f"no script: the kernel's argument {taken[0]} bears a name that Triton's warmup takes itself.")
    expressions = [text for call in calls for name, value in call.config.items() if (text := _expression_of(value))]
    found = inline(failure.file, failure.kernel, expressions)
    parts = [_part("stand_in")]
    if any(isinstance(v, str) and dtypes.DESCRIPTOR.match(v) for call in calls for v in call.args.values()):
        parts.append(_part("descriptor"))
    tail = [*([_part("budget")] if outcome == Outcome.NO_RESOURCES else []), _part("outcome")]
    if taken := sorted({name for part in (*parts, *tail) for name in part.names} & found.names):
        raise UsageError(f"no script: {taken[0]} is a name that the script itself needs; rename the kernel's.")
    names = _Names(found)
    target = targets.find(failure.failing.target)
    pretended = (target.backend, target.arch, target.warp_size, failure.environment)
    sections = [
        _docstring(failure, outcome, kind, written, found),
        *(["from __future__ import annotations"] if found.postponed else []),
        *(part.body for part in parts),
        f"repro_pretend({', '.join(json.dumps(v) for v in pretended)})",
        _merged([*found.imports, *_imports_of(expressions, found)]),
        *_kernel(failure, found),
        f"{_rule('the call')}\n\n\n{_calls(failure, found, names, written)}",
        _rule("compiling without a GPU, each in a process of its own"),
        *(part.body for part in tail),
        _main(target, names, (outcome, kind), failure),
    ]
    text = "\n\n\n".join(section for section in sections if section) + "\n"
    ast.parse(text)
    return text


def _recorded(verdict: Verdict) -> tuple[Outcome, str]:
    """Return outcome and kind of a failure.

    Raises:
        UsageError: a compile alone does not show it.
    """
    kind = verdict.reason.kind if verdict.reason else ""
    if not verdict.outcome.failed or not verdict.outcome.info.from_compile or verdict.stage.executes:
        raise UsageError(f"no script: {verdict.outcome} on a device is nothing that a compile shows.")
    if kind == "host memory":
        raise UsageError(
            "no script: the compiler ran out of the memory that one candidate is given here (--memory), which says "
            "nothing of another machine."
        )
    return verdict.outcome, kind


# ---- pieces of the text ---------------------------------------------------------------------------------------------


class _Part(msgspec.Struct, frozen=True):
    """A file of this package that is copied unchanged into the script."""

    body: str
    names: frozenset[str]


def _part(name: str) -> _Part:
    text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    nodes = ast.parse(text).body[1:]
    names = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.ClassDef)}
    names |= {t.id for n in nodes if isinstance(n, ast.Assign) for t in ast.walk(n) if isinstance(t, ast.Name)}
    return _Part("\n".join(text.splitlines()[nodes[0].lineno - 1 :]), frozenset(names))


def _docstring(
    failure: RecordedFailure, outcome: Outcome, kind: str, written: Sequence[dict[str, str]], found: Inlined
) -> str:
    what = outcome.info.compile_ends.format(kind=kind, seconds=f"{failure.deadline_s:g}")
    lines = [f"Compiling {failure.kernel} for {failure.failing.target} {what}."]
    if failure.verdict.reason and outcome is not Outcome.HUNG:
        at = f"\nat {failure.line}" if failure.line else ""
        lines.append(textwrap.indent(_filled(visible(failure.verdict.reason.text)) + at, "    "))
    differ = _differing(written)
    if failure.passing is not None:
        pairs = [", ".join(f"{n}={call[n]}" for n in differ if n in call) for call in written]
        lines.append(f"  fails:  {pairs[0]}\n  passes: {pairs[1]}\n  All else is the same.")
    else:
        lines.append("No configuration near it is known that passes.")
    lines.append(
        "Run it with Triton installed, and nothing else: no GPU, no torch. Each is compiled in a process of its own;\n"
        "`failing` or `passing` as its argument compiles that one in this process. Exit status: 1 it fails as\n"
        "recorded, 0 it passes now, 125 anything else: `git bisect run` understands that."
    )
    recorded = f"Recorded with Triton {failure.triton}, Python {platform.python_version()}, {platform.platform()}."
    lines.append(f"{recorded}\nWritten by gluonmap {__version__} from {failure.shown}.")
    if found.surroundings:
        lines.append(f"The kernel's module reads the environment: {', '.join(dict.fromkeys(found.surroundings))}.")
    text = "\n\n".join(lines).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{text}\n"""'


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH - 4, break_long_words=False, break_on_hyphens=False)


def _rule(title: str) -> str:
    head = f"# ---- {visible(title)} "
    return head + "-" * max(4, _WIDTH - len(head))


def _merged(lines: Iterable[str]) -> str:
    """Merge imports to one statement for each module, those of the standard library first."""
    plain: dict[str, None] = {}
    taken: dict[str, dict[str, None]] = {}
    for node in (ast.parse(line).body[0] for line in lines):
        assert isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names:
            written = ast.unparse(alias)
            if isinstance(node, ast.Import):
                plain[written] = None
            else:
                taken.setdefault(node.module or "", {})[written] = None
    found = [
        *(f"import {name}" for name in sorted(plain)),
        *(_from(base, sorted(taken[base])) for base in sorted(taken)),
    ]
    third = [text for text in found if text.split()[1].partition(".")[0] == "triton"]
    return "\n\n".join("\n".join(group) for group in ([t for t in found if t not in third], third) if group)


def _from(base: str, names: Sequence[str]) -> str:
    line = f"from {base} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return f"from {base} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def _kernel(failure: RecordedFailure, found: Inlined) -> Iterator[str]:
    """Yield the copied text file by file, the kernel's own file last."""
    for section in found.sections:
        title = failure.shown if section is found.sections[-1] else section.file
        yield f"{_rule(title)}\n\n\n{section.text}"


class _Names:
    """Names of the script, renamed where the kernel's module uses them."""

    def __init__(self, found: Inlined) -> None:
        self.call, self.failing, self.passing, self.target = (
            self._free(name, found) for name in ("call", "failing", "passing", "TARGET")
        )

    def _free(self, name: str, found: Inlined) -> str:
        while name in found.names:
            name += "_"
        return name


def _calls(failure: RecordedFailure, found: Inlined, names: _Names, written: Sequence[dict[str, str]]) -> str:
    """Return one function with everything that the calls share, and one function for each call."""
    differ = _differing(written)
    parameters = [name if all(name in call for call in written) else f"{name}=None" for name in differ]
    grid = failure.failing.grid or (1,)
    arguments = [f"        {n}={n if n in differ else text}," for n, text in written[0].items()]
    arguments += [f"        {n}={n}," for n in differ if n not in written[0]]
    kernel = found.kernel if found.plain else f"repro_kernel({found.kernel})"
    lines = [
        f"def {names.call}({', '.join(sorted(parameters, key=lambda p: '=' in p))}):",
        f"    return {kernel}.warmup(",
        *arguments,
        f"        grid={grid!r},",
        "    )",
    ]
    for name, call in zip((names.failing, names.passing), written, strict=False):
        given = ", ".join(f"{n}={call[n]}" for n in differ if n in call)
        lines += ["", "", f"def {name}():", f"    return {names.call}({given})"]
    return ("" if found.plain else _UNWRAP) + "\n".join(lines)


_UNWRAP = '''\
def repro_kernel(kernel):
    """The kernel without an autotuner around it, which would choose a configuration itself."""
    from triton.runtime.autotuner import Heuristics
    from triton.runtime.jit import JITFunction

    while not isinstance(kernel, (Heuristics, JITFunction)):
        kernel = kernel.fn
    return kernel


'''


def _main(target: targets.Target, names: _Names, recorded: tuple[Outcome, str], failure: RecordedFailure) -> str:
    given = [names.failing] if failure.passing is None else [names.failing, names.passing]
    calls = ", ".join(f'"{key}": {name}' for key, name in zip(("failing", "passing"), given, strict=False))
    outcome, kind = recorded
    arguments = [f"{{{calls}}}", f"({json.dumps(outcome)}, {json.dumps(kind)})", f"{failure.deadline_s:g}"]
    limits = ""
    if outcome is Outcome.NO_RESOURCES:
        limits = f"{names.target} = {json.dumps(_limits(target))}\n\n\n"
        arguments.append(f"lambda program: repro_over_budget(program, {names.target})")
    call = "".join(f"            {argument},\n" for argument in arguments)
    return f'{limits}if __name__ == "__main__":\n    raise SystemExit(\n        repro_main(\n{call}        )\n    )'


def _limits(target: targets.Target) -> dict[str, int]:
    return {n: getattr(target, n) for n in ("warp_size", "shared_bytes", "threads", "tensor_columns", "registers")}


# ---- the call -------------------------------------------------------------------------------------------------------


def _written(candidate: Candidate) -> dict[str, str]:
    """Return every argument of a call, as Python."""
    backend = targets.find(candidate.target).backend
    given = {name: _argument(value, backend) for name, value in candidate.args.items()}
    return given | {name: _expression_of(value) or repr(value) for name, value in candidate.config.items()}


def _differing(written: Sequence[dict[str, str]]) -> list[str]:
    """Return the names of the arguments in which the calls differ."""
    if len(written) == 1:
        return []
    failing, passing = written
    return [name for name in {**failing, **passing} if failing.get(name) != passing.get(name)]


def _argument(value: Value, backend: str) -> str:
    """Return the stand-in for a run-time argument, as Python."""
    if not isinstance(value, str):
        return repr(value)
    text = value.strip()
    if match := dtypes.POINTER.match(text):
        alignment = int(match["alignment"] or 16)
        address = "" if alignment % 16 == 0 else f", address={alignment}"
        return f'ReproTensor("{_dtype(match["dtype"])}"{address})'
    if match := dtypes.DESCRIPTOR.match(text):
        block = [int(d) for d in match["dims"].split(",")]
        shape = tuple([4096] * len(block))
        return f'repro_descriptor(ReproTensor("{_dtype(match["dtype"])}", shape={shape}), {block}, "{backend}")'
    if text in dtypes.INTEGERS:
        return repr(dtypes.INTEGERS[text])
    return "True" if text == "i1" else "1.5"


def _dtype(short: str) -> str:
    return dtypes.DTYPES.get(short, (short, 4))[0]


def _expression_of(value: Value) -> str:
    """Return the expression over the kernel's module that makes a value; "" for a plain value.

    Raises:
        UsageError: the text is no expression, for example the printed form of an object.
    """
    if not isinstance(value, str) or not value.startswith(_PYTHON_VALUE):
        return ""
    text = value[len(_PYTHON_VALUE) :].strip()
    try:
        return ast.unparse(ast.parse(text, mode="eval"))
    except SyntaxError as error:
        raise UsageError(f"no script: the value {text!r} cannot be written down as Python.") from error


def _imports_of(expressions: Sequence[str], found: Inlined) -> list[str]:
    """Return imports of Triton, its languages and layouts that an expression uses and the kernel's module lacks."""
    lines = []
    for node in (node for text in expressions for node in ast.walk(ast.parse(text))):
        if not isinstance(node, ast.Name) or node.id in found.names or hasattr(builtins, node.id):
            continue
        known = {
            "triton": "import triton",
            "tl": "from triton import language as tl",
            "gl": "from triton.experimental.gluon import language as gl",
        }
        layout = f"from triton.experimental.gluon.language import {node.id}" if node.id.endswith("Layout") else ""
        if line := known.get(node.id, layout):
            lines.append(line)
    return lines
