"""Files that projects ship, read: every entry with its place. Nothing in them is executed.

JSON of aiter (buckets `M_LEQ_16`, `any`), of vLLM and SGLang (batch sizes), Triton's own autotune results and
`gluonmap export --format triton-json`, JSON lines, and Python files with `triton.Config(…)` calls or `restrictions`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec

from gluonmap.export.aiter import BUCKET
from gluonmap.model import targets
from gluonmap.model.candidate import Config
from gluonmap.model.errors import UnknownTarget, UsageError
from gluonmap.model.targets import LAUNCH_OPTIONS
from gluonmap.query.config_files import read_configs
from gluonmap.query.feasibility import value_problem
from gluonmap.source import syntax
from gluonmap.spec import probe_file

AITER_BOUNDS = (1, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
"""STANDARD_M_BOUNDS of aiter/ops/triton/utils/gemm_config_utils.py: few callers ask for other buckets."""
TRITON_DEFAULTS = {"num_warps": 4, "num_stages": 3, "num_ctas": 1}
"""Defaults of `triton.Config`. The compiler's are different (triton/runtime/autotuner.py, 3.6 to 3.9)."""


class FileForm(StrEnum):
    """The form of a file."""

    AUTOTUNE = "@triton.autotune list"
    CONFIGS = "list of triton.Config"
    AITER = "aiter JSON"
    VLLM = "vLLM or SGLang JSON"
    TRITON = "Triton's autotune JSON"
    LINES = "JSON lines"
    JSON = "JSON"
    RULES = "Kernel Tuner restrictions"

    @property
    def raced(self) -> bool:
        """The entries compete with each other; in other forms they serve different sizes."""
        return self in (FileForm.AUTOTUNE, FileForm.CONFIGS, FileForm.TRITON, FileForm.LINES)

    @property
    def whole(self) -> bool:
        """The entries go to the launch unchanged; in other forms they go through host code first."""
        return self in (FileForm.AUTOTUNE, FileForm.CONFIGS, FileForm.TRITON)


class ShippedEntry(msgspec.Struct, frozen=True):
    """One configuration as it is shipped."""

    file: str
    """Path of the file as the user gave it."""
    name: str
    """Bucket, batch size or position in a list; "" if the file is one configuration."""
    config: Config
    line: int | None = None
    lines: dict[str, int] = {}
    """Key → its line, if the key is on a known line."""
    defaulted: frozenset[str] = frozenset()
    """Keys that the file does not set: their values are defaults of `triton.Config`."""
    sizes: dict[str, int] = {}
    """Problem sizes in the names of file and bucket."""

    @property
    def written(self) -> Config:
        """The values that the file sets."""
        return {name: value for name, value in self.config.items() if name not in self.defaulted}


class Oddity(msgspec.Struct, frozen=True):
    """A part of a file that its loader never reads."""

    name: str
    line: int | None
    why: str
    certain: bool = True
    """False: a caller of aiter that passes its own bounds reads the part."""


class ShippedFile(msgspec.Struct, frozen=True):
    """One file with its entries or restrictions."""

    file: str
    form: FileForm
    entries: tuple[ShippedEntry, ...] = ()
    target: str = ""
    """The target in the file's path; empty: none."""
    elsewhere: str = ""
    """An architecture or device in the file's path that is no target of this tool."""
    triton: str = ""
    """Version of Triton that tuned the file, from its text or its folder's name; empty: unknown."""
    oddities: tuple[Oddity, ...] = ()
    restrictions: tuple[str, ...] = ()
    lines: tuple[int, ...] = ()
    """Lines of the restrictions."""
    domains: dict[str, tuple[Any, ...]] = {}
    """`tune_params` of a Kernel Tuner file."""
    notes: tuple[str, ...] = ()


def read_shipped_file(text: str) -> ShippedFile:
    """Read FILE, or one entry of it ("FILE#ENTRY").

    Raises:
        UsageError: the file cannot be read, has neither configurations nor restrictions, or lacks the entry.
    """
    name, _, wanted = text.partition("#")
    path = Path(name)
    match path.suffix:
        case ".py":
            found = _python(name)
        case ".jsonl":
            found = _lines(name)
        case _:
            found = _json(name)
    if wanted:
        entries = tuple(entry for entry in found.entries if entry.name == wanted)
        if not entries:
            names = ", ".join(entry.name or "one" for entry in found.entries)
            raise UsageError(f"the configuration file {name} has no entry {wanted!r} (it has {names}).")
        found = msgspec.structs.replace(found, entries=entries)
    for entry in found.entries:
        for key, value in entry.config.items():
            if isinstance(value, dict | list):
                raise UsageError(f"{_shown(entry)} gives {key} a value that is no number or text.")
            if why := value_problem(value):
                raise UsageError(f"{_shown(entry)}: the value of {key} {why}.")
    return found


def _shown(entry: ShippedEntry) -> str:
    return f"{entry.file}{f', entry {entry.name},' if entry.name else ''}"


# ---- JSON ----------------------------------------------------------------------------------------------------------


def _json(name: str) -> ShippedFile:
    listed = _listed(name)
    written = {"": {}} if listed else probe_file.read_entries(name)
    text = Path(name).read_text(encoding="utf-8", errors="replace")
    where = _Places(text)
    target, elsewhere = target_of(name)
    named = ShippedFile(name, FileForm.JSON, target=target, elsewhere=elsewhere, triton=_triton(name, text))
    if listed:
        entries = [ShippedEntry(name, place, config, where.line(path)) for place, path, config in listed]
        return msgspec.structs.replace(named, form=FileForm.TRITON, entries=tuple(entries))
    sizes = _sizes(name)
    found = [
        ShippedEntry(
            file=name,
            name=entry,
            config=config,
            line=where.line(path := tuple(entry.split("/")) if entry else ()),
            lines={key: line for key in config if (line := where.line((*path, key)))},
            sizes={**sizes, **_bucket_size(entry)},
        )
        for entry, config in written.items()
    ]
    form = _form(tuple(written))
    odd = [Oddity("/".join(path), line, "the key occurs twice: the last one counts") for path, line in where.twice]
    odd += _unread(form, tuple(written), where)
    entries = [e for e in found if form is not FileForm.VLLM or e.name.isdigit()]
    return msgspec.structs.replace(named, form=form, entries=tuple(entries), oddities=tuple(odd))


def _form(names: Sequence[str]) -> FileForm:
    if any(BUCKET.fullmatch(name) for name in names):
        return FileForm.AITER
    return FileForm.VLLM if any(name.isdigit() for name in names) else FileForm.JSON


def _unread(form: FileForm, names: Sequence[str], where: _Places) -> Iterator[Oddity]:
    """Yield the entries that the loader of a file of this form never returns."""
    for name in names:
        line = where.line(tuple(name.split("/")))
        if form is FileForm.VLLM and not name.isdigit():
            yield Oddity(name, line, "vLLM reads every key as a number of tokens")
        elif form is FileForm.AITER and not BUCKET.fullmatch(name) and "/" not in name:
            yield Oddity(name, line, "aiter's loader asks for M_LEQ_x, M_GEQ_x and any", certain=False)
        elif form is FileForm.AITER and (bound := name.rpartition("_")[2]).isdigit() and int(bound) not in AITER_BOUNDS:
            why = f"aiter's loader asks for {name} only if its caller passes its own bounds"
            yield Oddity(name, line, why, certain=False)


def _listed(name: str) -> list[tuple[str, tuple[str | int, ...], Config]]:
    """Return the entries of Triton's `<kernel>.autotune.json`, or of `gluonmap export --format triton-json`."""
    try:
        content = msgspec.json.decode(Path(name).read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return []  # the caller reads the file again and reports the error
    if not isinstance(content, dict):
        return []
    found: list[tuple[str, tuple[str | int, ...], Config]] = []
    for key in ("configs_timings", "configs"):
        for number, item in enumerate(content[key]) if isinstance(content.get(key), list) else ():
            config = item[0] if isinstance(item, list) and item else item
            if isinstance(config, dict) and isinstance(config.get("kwargs"), dict):
                options = {n: config[n] for n in LAUNCH_OPTIONS if config.get(n) is not None}
                found.append((f"[{number}]", (key, number), {**config["kwargs"], **options}))
    return found


class _Places:
    """Lines of the keys of a JSON text. JSON is parsed as Python: only `true`, `false` and `null` differ, as names."""

    def __init__(self, text: str) -> None:
        self.lines: dict[tuple[str | int, ...], int] = {}
        self.twice: list[tuple[tuple[str, ...], int]] = []
        try:
            tree = ast.parse(f"({text}\n)", mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        self._walk(tree.body, ())

    def line(self, path: tuple[str | int, ...]) -> int | None:
        return self.lines.get(path)

    def _walk(self, node: ast.expr, path: tuple[Any, ...]) -> None:
        if isinstance(node, ast.List):
            for number, item in enumerate(node.elts):
                self.lines[(*path, number)] = item.lineno
                self._walk(item, (*path, number))
        if not isinstance(node, ast.Dict):
            return
        seen: dict[tuple[str, ...], int] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                here = (*path, key.value)
                if here in seen:
                    self.twice.append((here, seen[here]))
                seen[here] = self.lines[here] = key.lineno
                self._walk(value, here)


# ---- names ---------------------------------------------------------------------------------------------------------

_ARCH = re.compile(r"(?<![A-Za-z0-9])(gfx\d+[a-z]?|sm_?\d+)(?![A-Za-z0-9])")
_DEVICE = re.compile(r"device_name=([^,]+?)(?=,|\.json$|$)")
_SIZE = re.compile(r"(?<![A-Za-z0-9_])([BNK])=(\d+)(?=[-.])")
_FOLDER = re.compile(r"triton_(\d+)_(\d+)_(\d+)")


def target_of(name: str) -> tuple[str, str]:
    """Return the target that a path names, and the unknown device that it names: "gfx950", "" or "", "gfx9999"."""
    device = _DEVICE.search(Path(name).name)
    words = re.split(r"[^A-Za-z0-9]+", device[1]) if device else []
    if not device and (arch := _ARCH.search(Path(name).name) or _last(_ARCH, str(Path(name).parent))):
        words = [arch[1]]
    for word in words:
        try:
            return targets.find(word).name, ""
        except UnknownTarget:
            continue
    return "", (device[1] if device else words[0]) if words else ""


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = list(pattern.finditer(text))
    return found[-1] if found else None


def _sizes(name: str) -> dict[str, int]:
    """Return the sizes in an aiter file's name, `-N=7168-K=2048`. In vLLM's, E counts experts and N is another size."""
    return {} if "device_name=" in name else {m[1]: int(m[2]) for m in _SIZE.finditer(Path(name).name)}


def _bucket_size(bucket: str) -> dict[str, int]:
    """Return the largest M of an aiter bucket, or vLLM's number of tokens."""
    if bucket.isdigit():
        return {"M": int(bucket)}
    size = bucket[6:] if bucket.startswith("M_LEQ_") else ""
    return {"M": int(size)} if size.isdigit() else {}


def _triton(name: str, text: str) -> str:
    if match := _last(_FOLDER, name):
        return ".".join(match.groups())
    match = re.search(r'"triton_version"\s*:\s*"([^"]{1,40})"', text)
    return match[1] if match else ""


# ---- JSON lines ----------------------------------------------------------------------------------------------------


def _lines(name: str) -> ShippedFile:
    try:
        with open(name, "rb") as stream:
            entries = [ShippedEntry(name, f"line {n}", config, n) for n, config in read_configs(stream, name)]
    except OSError as error:
        raise UsageError(f"cannot read the configurations {name}: {error.strerror}.") from error
    if not entries:
        raise UsageError(f"the configuration file {name} holds no configuration.")
    return ShippedFile(name, FileForm.LINES, tuple(entries))


# ---- Python --------------------------------------------------------------------------------------------------------


def _python(name: str) -> ShippedFile:
    """Read literal `triton.Config(…)` calls, or `restrictions` and `tune_params`, from the text alone."""
    try:
        tree = ast.parse(syntax.text_of(Path(name)))
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}.") from error
    except (SyntaxError, ValueError, RecursionError) as error:
        raise UsageError(f"{name} is no Python: {error}.") from error
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "restrictions" in assigned:
        return _restrictions(name, assigned)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_config(node)]
    calls.sort(key=lambda node: (node.lineno, node.col_offset))
    written = [(call, config) for call in calls if (config := written_config(call)) is not None]
    if not written:
        what = "only computed" if calls else "no"
        raise UsageError(
            f"{name} holds {what} triton.Config(…) and no restrictions. A kernel's own @triton.autotune list is "
            "audited where no file is named; a pruning function is given with --prune FILE.py:FUNCTION."
        )
    entries = [listed_entry(name, number, call, config) for number, (call, config) in enumerate(written)]
    left = len(calls) - len(written)
    notes = (f"{name}: {left} triton.Config(…) are computed, not written out: not read",) if left else ()
    return ShippedFile(name, FileForm.CONFIGS, tuple(entries), notes=notes)


def is_config(call: ast.Call) -> bool:
    """Return whether a call makes a `triton.Config`."""
    return syntax.dotted(call.func).rpartition(".")[2] == "Config"


def written_config(call: ast.Call) -> Config | None:
    """Return the configuration of a `triton.Config(…)` with its defaults; None if its values are not literals."""
    try:
        kwargs = ast.literal_eval(call.args[0]) if call.args else {}
        options = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords if k.arg not in ("pre_hook", None)}
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None
    if len(call.args) > 1 or not isinstance(kwargs, dict) or any(k.arg is None for k in call.keywords):
        return None
    own = options.pop("kwargs", kwargs)
    if not isinstance(own, dict) or not all(isinstance(key, str) for key in own):
        return None
    return {**own, **{n: v for n, v in (TRITON_DEFAULTS | options).items() if v is not None}}


def listed_entry(name: str, number: int, call: ast.Call, config: Config) -> ShippedEntry:
    """Return the entry of one `triton.Config(…)` call of a list."""
    lines = {str(keyword.arg): keyword.value.lineno for keyword in call.keywords if keyword.arg}
    for node in call.args[:1]:
        if isinstance(node, ast.Dict):
            keys = [key for key in node.keys if isinstance(key, ast.Constant)]
            lines |= {str(key.value): key.lineno for key in keys}
    defaulted = frozenset(TRITON_DEFAULTS) - {*lines}
    return ShippedEntry(name, f"[{number}]", config, call.lineno, lines, defaulted)


def _restrictions(name: str, assigned: Mapping[str, ast.expr]) -> ShippedFile:
    node = assigned["restrictions"]
    items = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    try:
        texts = [ast.literal_eval(item) for item in items]
        domains = ast.literal_eval(assigned["tune_params"]) if "tune_params" in assigned else {}
    except ValueError:
        texts, domains = [None], {}
    if not texts or not all(isinstance(text, str) for text in texts):
        raise UsageError(
            f"{name}: restrictions must be a list of texts, written out. A function is given with "
            "--prune FILE.py:FUNCTION."
        )
    if not isinstance(domains, dict) or not all(isinstance(v, list | tuple) for v in domains.values()):
        raise UsageError(f"{name}: tune_params must be a dict of lists, written out.")
    return ShippedFile(
        name,
        FileForm.RULES,
        restrictions=tuple(texts),
        lines=tuple(item.lineno for item in items),
        domains={str(k): tuple(v) for k, v in domains.items()},
    )
