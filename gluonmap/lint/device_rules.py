"""Rules about the device: queries of it at import, and APIs that the kernel's target lacks."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gluonmap.lint.autotune_rules import probe_of
from gluonmap.lint.findings import LintFinding, LintSettings
from gluonmap.lint.kernel_functions import Function, Module, is_jit
from gluonmap.lint.linted_file import LintedFile
from gluonmap.lint.nodes import call_name, full_name, last_name, written
from gluonmap.model import targets
from gluonmap.model.inspection import FunctionSource
from gluonmap.source.code_lines import absolute_line, source_of
from gluonmap.source.syntax import Definition, dotted, text_of
from gluonmap.source.target_api import excluded_targets, find_api_uses


def check(subject: LintedFile, settings: LintSettings) -> Iterator[LintFinding]:
    """Yield the findings about queries at import and about APIs of another target."""
    if "GM301" in settings.codes:
        yield from _at_import(subject)
    if "GM302" in settings.codes:
        yield from _apis(subject)


# ---- at import -------------------------------------------------------------------------------------------------------

_QUERIES = {"get_current_target", "get_device_capability", "get_device_properties", "get_device_name"}
_FAMILY_QUERIES = re.compile(r"^triton\.(.*\.)?is_(hip|cuda|xpu|cdna\d?|rdna\d?|hopper|blackwell)\w*$")
_TESTS = re.compile(r"^test_|_test\.py$|^conftest\.py$")
_MOST_HOPS = 4
"""Calls that a query is followed through."""


def _at_import(subject: LintedFile) -> Iterator[LintFinding]:
    if _is_no_module(subject) or "triton" not in subject.text:
        return
    asks_device = _DeviceQueries(subject)
    for calls in _calls_at_import(subject.module.tree):
        call = next((call for call in calls if asks_device(call, subject.module)), None)
        if call is not None:
            yield subject.finding(
                "GM301",
                call,
                f"{written(call)} asks for this machine's device when the file is imported: on a machine without it "
                "that fails, or decides for another one",
                "ask in the function that launches the kernel, when it is called",
            )


def _is_no_module(subject: LintedFile) -> bool:
    """Return whether the file is a test or a script, which nobody imports."""
    path = subject.module.path
    if _TESTS.search(path.name) or not path.stem.isidentifier():
        return True
    level = subject.flat.level if "sys.argv" in subject.text else []
    return any(dotted(node) == "sys.argv" for node in level if isinstance(node, ast.Attribute))


class _DeviceQueries:
    """The test of whether a call asks the machine for its device."""

    def __init__(self, subject: LintedFile) -> None:
        self.subject = subject
        self.known: dict[int, bool] = {}

    def __call__(self, call: ast.Call, module: Module, hops: int = _MOST_HOPS) -> bool:
        name = call_name(call)
        if not name:
            return False
        full = full_name(name, module)
        direct = last_name(call) in _QUERIES and full.split(".")[0] in ("torch", "triton")
        if direct or _FAMILY_QUERIES.match(full):
            return True
        function = self.subject.called(call.func, module) if hops else None
        return function is not None and not is_jit(function.node) and self._asks(function, hops - 1)

    def _asks(self, function: Function, hops: int) -> bool:
        key = id(function.node)
        if key not in self.known:
            self.known[key] = False
            nodes = self.subject.trees.flat(function.module).of(function.node)
            self.known[key] = any(self._asks_here(node, function.module, hops) for node in nodes)
        return self.known[key]

    def _asks_here(self, node: ast.AST, module: Module, hops: int) -> bool:
        match node:
            case ast.Call():
                return self(node, module, hops)
            case ast.Name(id=name, ctx=ast.Load()):
                return self._is_answer(name, module, hops)
        return False

    def _is_answer(self, name: str, module: Module, hops: int) -> bool:
        """Return whether a name of the module was set to what such a call answers."""
        values = self.subject.trees.flat(module).local(module.tree).values.get(name, [])
        calls = (node for value in values for node in ast.walk(value) if isinstance(node, ast.Call))
        return any(self(call, module, hops) for call in calls)


def _calls_at_import(tree: ast.Module) -> Iterator[list[ast.Call]]:
    """Yield the calls of each statement that Python executes when it imports the file."""
    pending: list[ast.stmt] = list(reversed(tree.body))
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.If) and _never_imported(statement.test):
            continue
        inner = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.stmt)]
        inner += [s for handler in getattr(statement, "handlers", []) for s in handler.body]
        if isinstance(statement, Definition):
            defaults = (default for default in (*statement.args.defaults, *statement.args.kw_defaults) if default)
            yield list(_calls([*statement.decorator_list, *defaults]))
        else:
            pending += reversed(inner)
            yield list(_calls([n for n in ast.iter_child_nodes(statement) if n not in inner]))


def _calls(nodes: list[ast.AST] | list[ast.expr]) -> Iterator[ast.Call]:
    pending: list[ast.AST] = list(reversed(nodes))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, ast.Lambda | ast.ExceptHandler):
            pending += reversed(list(ast.iter_child_nodes(node)))


def _never_imported(test: ast.expr) -> bool:
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return bool(names & {"__name__", "TYPE_CHECKING"})


# ---- APIs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Mentions:
    """The ways in which a text names one target."""

    target: targets.Target
    word: re.Pattern[str]
    sentence: re.Pattern[str]


def _mentions_of(target: targets.Target) -> _Mentions:
    """Return the patterns. The devices of a series differ in their last letter: MI300 is MI300A or MI300X."""
    names = "|".join([*target.names, *(f"{device}?" for device in target.devices)])
    return _Mentions(
        target,
        re.compile(rf"(?<![a-z0-9])({names})(?![a-z0-9])", re.IGNORECASE),
        re.compile(rf"\b(for|on|targets?:?)\s+(the\s+|AMD\s+)*({names})\b", re.IGNORECASE),
    )


_PREDECESSORS = tuple(_mentions_of(target) for target in targets.TARGETS if target.predates_api)
"""Targets that kernels of the next generation are easily taken for: some of its functions compile here (gfx942)."""
_DENIED = re.compile(
    r"\b(not|no|never|unlike|except|instead|falls?|without|lacks?|missing|only on|older|than)\b|n't", re.IGNORECASE
)


def _apis(subject: LintedFile) -> Iterator[LintFinding]:
    if "gluon" not in subject.text or "jit" not in subject.text:
        return
    for kernel, mentions in itertools.product(subject.kernels, _PREDECESSORS):
        target = mentions.target
        why = _meant(subject, kernel, mentions)
        sources = _sources(subject, kernel) if why else ()
        texts = {source.file: text_of(Path(source.file)) for source in sources}
        use = excluded_targets(find_api_uses(sources, texts)).get(target.name) if sources else None
        if use is not None:
            place = use.location
            at = absolute_line(texts[place.file], place) or 1
            here = place.file == sources[0].file
            successor = targets.find(target.predates_api)
            there = "" if here else f" ({Path(place.file).name}:{at})"
            yield LintFinding(
                subject.path, at if here else kernel.node.lineno, 1, "GM302",
                f"{use.api}{there} does not exist on {target.name}, which {kernel.name} is for by {why}",
                f"use the call of {target.alias}, or say that the kernel is for {successor.name}",
                kernel.name,
            )  # fmt: skip


def _sources(subject: LintedFile, kernel: Function) -> tuple[FunctionSource, ...]:
    """Return the kernel and the jit functions that it reaches, each with the calls that it makes."""
    order = [kernel]
    places = {id(kernel.node): 0}
    found: list[FunctionSource] = []
    for function in order:  # grows while it is walked
        calls: dict[str, int] = {}
        for call in subject.body(function).calls:
            helper = subject.called(call.func, function.module)
            if helper is not None and is_jit(helper.node):
                if id(helper.node) not in places:
                    places[id(helper.node)] = len(order)
                    order.append(helper)
                calls[call_name(call)] = places[id(helper.node)]
        path = function.module.path
        source, line = source_of(function.node, text_of(path))
        found.append(FunctionSource(function.name, str(path), line, source, calls))
    return tuple(found)


def _meant(subject: LintedFile, kernel: Function, mentions: _Mentions) -> str:
    """Return why the kernel is for the target; "" if nothing says so."""
    path = subject.module.path
    if any(mentions.word.search(name) for name in (*path.parts[-3:-1], path.stem)):
        return "its path"
    if mentions.word.search(kernel.name):
        return "its name"
    probe = probe_of(path, kernel.name)
    if set(mentions.target.names) & set(probe.targets):
        return f"TARGETS of {Path(probe.path).name}"
    for said in (
        _first_sentence(kernel.node), _first_sentence(subject.module.tree), *_comments_above(kernel.node, subject.text)
    ):  # fmt: skip
        if mentions.sentence.search(said) and not _DENIED.search(said):
            return f'its own words, "{said[:60]}"'
    return ""


def _first_sentence(node: ast.Module | Definition) -> str:
    return (ast.get_docstring(node) or "").strip().split("\n")[0]


def _comments_above(node: Definition, text: str) -> list[str]:
    lines = text.splitlines()
    row = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 2
    found: list[str] = []
    while 0 <= row < len(lines) and lines[row].lstrip().startswith("#"):
        found.append(lines[row].lstrip(" #"))
        row -= 1
    return found
