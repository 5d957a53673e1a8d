"""The parser of one kernel's assembly text: instructions with source lines, labels, descriptor, arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gluonmap.cdna.errors import BadProgram
from gluonmap.cdna.operands import Operand, parse

Modifier = int | str | tuple[int, ...]

FLAGS = frozenset(
    ("sc0", "sc1", "nt", "offen", "idxen", "lds", "clamp", "row_mirror", "row_half_mirror", "mul:2", "mul:4", "div:2")
)
"""Modifiers without a value."""
_SUFFIX = re.compile(r"_(e32|e64)$")
_LABEL = re.compile(r"^(\.?[\w$]+):")
_MODIFIER = re.compile(r"^[a-z][a-z_0-9]*:(?![0-9]+\])")
_NUMBER = re.compile(r"^-?(0x[0-9a-fA-F]+|\d+)$")
_COUNTER = re.compile(r"(vmcnt|lgkmcnt|expcnt)\((\d+)\)")
_CALLER = re.compile(r"@\[ ([^\s\]]+:\d+):\d+")
_WAVE = 64


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the kernel's source."""

    file: str
    line: int
    called_from: tuple[str, ...] = ()
    """Calls through which the function of the line was inlined, innermost first, such as "kernel.py:134"."""
    path: str = ""
    """The file's path."""

    def __str__(self) -> str:
        return " called from ".join((f"{self.file}:{self.line}", *self.called_from))


@dataclass(frozen=True, slots=True, eq=False)
class Instruction:
    """One instruction. `pc` counts instructions, not bytes."""

    pc: int
    name: str
    """Opcode without the suffix of its encoding: v_add_u32 for v_add_u32_e32. The suffixes _dpp and _sdwa stay."""
    operands: tuple[Operand, ...]
    modifiers: dict[str, Modifier]
    text: str
    line: Line | None

    def number(self, name: str, default: int = 0) -> int:
        """Return a modifier that is a number."""
        value = self.modifiers.get(name, default)
        if not isinstance(value, int):
            raise BadProgram(f"{name} is not a number in: {self.text}")
        return value

    def numbers(self, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
        """Return a modifier that is a list, such as op_sel:[0,1]."""
        value = self.modifiers.get(name, default)
        if not isinstance(value, tuple):
            raise BadProgram(f"{name} is not a list in: {self.text}")
        return value


@dataclass(frozen=True, slots=True)
class Argument:
    """One entry of the kernel's argument block. Offset and size are in bytes."""

    offset: int
    size: int
    kind: str
    """`value_kind` of the metadata: global_buffer, by_value, hidden_…"""


@dataclass(frozen=True, slots=True)
class Code:
    """The parsed text of a kernel."""

    name: str
    target: str
    """gfx942 or gfx950."""
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]
    """Label → pc."""
    descriptor: dict[str, int]
    """The .amdhsa_… directives without their prefix."""
    arguments: tuple[Argument, ...]
    threads: int
    """Number of work-items of one work-group."""
    files: dict[int, str] = field(default_factory=dict)
    """Number of a source file in the text → its path."""

    @property
    def waves(self) -> int:
        """Number of waves of one work-group."""
        return self.threads // _WAVE


def read(text: str) -> Code:
    """Parse the kernel in `text`.

    Raises:
        BadProgram: the text is not amdgcn assembly, or does not hold exactly one kernel.
    """
    target = re.search(r'\.amdgcn_target\s+"[^"]*-(gfx\w+?)(?:[:"])', text)
    names = re.findall(r"^\s*\.amdhsa_kernel\s+(\S+)", text, re.MULTILINE)
    if target is None or len(names) != 1:
        raise BadProgram(f"not amdgcn assembly of one kernel: {len(names)} kernels in {len(text)} characters")
    descriptor = {
        k: int(v, 0)
        for k, v in re.findall(r"\.amdhsa_(\w+)\s+(-?\w+)\s*$", text, re.MULTILINE)
        if v[:1] in "-0123456789"
    }
    arguments, threads = _metadata(text)
    instructions: list[Instruction] = []
    labels: dict[str, int] = {}
    files: dict[int, str] = {}
    line: Line | None = None
    in_text = True
    for raw in text.splitlines():
        code = raw.split(";")[0].rstrip()
        if match := _LABEL.match(code):
            labels[match[1]] = len(instructions)
            continue
        statement = code.strip()
        if not statement:
            continue
        if statement.startswith("."):
            word, _, rest = statement.partition("\t")
            word, _, more = word.partition(" ")
            rest = more + rest
            if word == ".loc":
                number, where = (int(p) for p in rest.split()[:2])
                # Line 0 marks code without a source line. It keeps the last line, which is nearer than none.
                if where:
                    path = files.get(number, "?")
                    line = Line(path.rpartition("/")[2], where, tuple(_CALLER.findall(raw)), path)
            elif word == ".file" and (match := re.match(r'(\d+)\s+(?:"([^"]*)"\s+)?"([^"]*)"', rest)):
                files[int(match[1])] = f"{match[2].rstrip('/')}/{match[3]}" if match[2] else match[3]
            elif word == ".section":
                in_text = rest.startswith(".text")
            elif word == ".text":
                in_text = True
            elif word == ".amdgpu_metadata":
                break
            continue
        if in_text and raw.startswith("\t"):
            instructions.append(_instruction(len(instructions), statement, line))
    if not instructions:
        raise BadProgram(f"kernel {names[0]} has no instruction")
    if labels.get(names[0]) != 0:
        raise BadProgram(f"kernel {names[0]} is not the first function of the text: calls are not executed")
    return Code(names[0], target[1], tuple(instructions), labels, descriptor, arguments, threads, files)


def _metadata(text: str) -> tuple[tuple[Argument, ...], int]:
    """Return arguments and work-items of the kernel, from the YAML block at the end."""
    start = text.find("amdhsa.kernels:")
    if start < 0:
        raise BadProgram("the text has no amdhsa.kernels metadata")
    block = text[start:]
    threads = re.search(r"\.max_flat_workgroup_size:\s+(\d+)", block)
    if threads is None:
        raise BadProgram("the metadata has no .max_flat_workgroup_size")
    arguments = []
    # An argument's fields are sorted, so each ends with its .value_kind.
    for entry in re.finditer(r"\.offset:\s+(\d+)\s+\.size:\s+(\d+)\s+\.value_kind:\s+(\w+)", block):
        arguments.append(Argument(int(entry[1]), int(entry[2]), entry[3]))
    return tuple(arguments), int(threads[1])


def _instruction(pc: int, text: str, line: Line | None) -> Instruction:
    name, _, rest = text.partition(" ")
    name = _SUFFIX.sub("", name)
    modifiers: dict[str, Modifier] = {}
    operands: list[Operand] = []
    if name == "s_waitcnt":
        modifiers |= {k: int(v) for k, v in _COUNTER.findall(rest)}
        return Instruction(pc, name, (), modifiers, text, line)
    for chunk in _split(rest):
        for word in _words(chunk):
            if word in FLAGS:
                modifiers[word] = 1
            elif _MODIFIER.match(word):
                key, _, value = word.partition(":")
                modifiers[key] = _value(value)
            else:
                operands.append(parse(word))
    return Instruction(pc, name, tuple(operands), modifiers, text, line)


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [p for p in parts if p]


def _words(text: str) -> list[str]:
    """Split one part into words. Brackets keep their words together."""
    return re.findall(r"[^\s(\[]*\([^)]*\)|[^\s\[]*\[[^\]]*\]\|?|\S+", text)


def _value(text: str) -> Modifier:
    if text.startswith("["):
        return tuple(int(part, 0) for part in text[1:-1].split(","))
    return int(text, 0) if _NUMBER.match(text) else text
