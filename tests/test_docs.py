"""What README.md and docs/ say is so: command lines run, outputs are shown as they are, links lead somewhere."""

from __future__ import annotations

import ast
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import click
import pytest
from conftest import KERNELS, REPOSITORY, Finished, Project
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gluonmap.cli import cli

PAGES = ("README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(REPOSITORY)) for p in REPOSITORY.glob("docs/**/*.md")))
TOLD = [page for page in PAGES if page != "CONTRIBUTING.md"]
FOLDERS = ("kernels/", "probes/", "reports/", "docs/", "benchmarks/", "tests/")

READERS = {
    "aiter/": "a checkout of ROCm/aiter",
    "v36/": "maps of two Tritons",
    "v39/": "maps of two Tritons",
    "~/triton-next": "an environment with the next Triton",
    "MAP": "stands for a map",
    "KERNEL": "stands for a kernel",
    "$target": "a loop of the shell",
    "configs/": "a project's configurations",
    "gfx950-GEMM-MXFP4.json": "a project's configurations",
    "tuning.py": "a project's pruning function",
    "verdicts.jsonl": "a recorded table",
    "moe_routing_sigmoid_top1_fused.py": "a kernel of aiter",
}
"""What a command line can name and no one but its reader has: such a line is parsed, and not run."""

NO_VERDICT = {2, 3}
"""Exit codes that say that a command line of the docs does not do what it should. 1 is a finding."""


@dataclass(frozen=True)
class Line:
    """A command line, where it stands, and the output that is shown below it."""

    page: str
    number: int
    words: tuple[str, ...]
    shown: str = ""

    @property
    def name(self) -> str:
        return f"{self.page}:{self.number} {' '.join(self.words)}"

    @property
    def command(self) -> click.Command | None:
        return cli.commands.get(self.words[1])


@cache
def text_of(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@cache
def tokens_of(page: str) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(text_of(page))


def blocks(page: str) -> Iterator[tuple[str, int, str]]:
    """Language, first line and text of each code block."""
    for token in tokens_of(page):
        if token.type == "fence" and token.map:
            yield token.info.strip(), token.map[0] + 2, token.content


def inline(page: str) -> Iterator[Token]:
    for token in tokens_of(page):
        yield from token.children or ()


def lines_of(page: str) -> Iterator[Line]:
    """Command lines: all of `sh` blocks, `run:` steps of workflows, and what stands after `$` in a terminal's output."""
    for language, first, text in blocks(page):
        if language in ("sh", "yaml"):
            for number, line in joined(text, first):
                line = re.sub(r"^(- )?(run: )?", "", line.strip()) if language == "yaml" else line
                yield from (Line(page, number, words) for words in commands_in(line))
        elif text.startswith("$ "):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                yield from (Line(page, first, words, shown) for words in commands_in(line))


def joined(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; what ends in a backslash goes on."""
    whole, start = "", 0
    for number, line in enumerate(text.splitlines(), first):
        start = start if whole else number
        whole += line.removesuffix("\\")
        if not line.endswith("\\"):
            yield start, whole
            whole = ""


def commands_in(line: str) -> Iterator[tuple[str, ...]]:
    """The calls of gluonmap in a line of a shell, without what the shell makes of them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in [*lexer, ";"]:
            if word and not word.strip("|&;<>"):
                if words and Path(words[0]).name == "gluonmap":
                    yield ("gluonmap", *words[1:])
                words = []
            else:
                words.append(word)
    except ValueError:
        if "gluonmap" in line:
            raise


LINES = [line for page in TOLD for line in lines_of(page)]


def readers_own(line: Line) -> str:
    """Why a command line cannot be run here: what it names is its reader's; "" if all is there."""
    for word in line.words[1:]:
        for mark, why in READERS.items():
            if word.startswith(mark) or f"={mark}" in word or f"/{mark}" in word:
                return why
    return ""


def too_much(line: Line) -> str:
    """Why a command line is not run here although all that it names is there; "" if it can be run."""
    name, words = line.words[1], line.words[2:]
    if name == "race" or "--measure" in words or {"launch", "check", "time"} & set(words):
        return "it needs a GPU"
    if name in ("probe", "check", "find-default") and any(word.startswith("kernels/") for word in words):
        return "minutes of compiles"
    return ""


def parsed(line: Line) -> click.Context:
    """The line as click understands it."""
    assert line.command is not None, f"{line.name}: gluonmap has no command {line.words[1]!r}"
    return line.command.make_context(line.words[1], list(line.words[2:]), resilient_parsing=False)


RUN = list({line.words: line for line in sorted(LINES, key=lambda line: bool(line.shown)) if line.command and not readers_own(line) and not too_much(line)}.values())


def test_command_lines_are_found() -> None:
    """The tests below test nothing if none is."""
    assert len(LINES) > 50
    assert len(RUN) > 20
    words = {line.words for line in LINES}
    assert ("gluonmap", "probe", "kernels/cdna4/gemm_mxfp4.py", "--target", "gfx950") in words
    assert any("SPLITK_BLOCK_SIZE=cdiv(2" in word for line in words for word in line)


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_every_command_line_has_a_command_options_and_arguments_that_there_are(line: Line) -> None:
    try:
        parsed(line)
    except click.exceptions.Exit as ended:
        assert ended.exit_code == 0  # --help and --version end here
    except click.UsageError as error:
        raise AssertionError(f"{line.name}: {error.format_message()}") from None


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.name)
def test_every_file_of_this_repository_that_a_command_line_names_is_there(line: Line) -> None:
    if readers_own(line):
        return
    for word in line.words[2:]:
        if word.startswith(FOLDERS) and "my_kernel" not in word:
            assert (REPOSITORY / word).exists(), f"{line.name}: there is no {word}"


@dataclass(frozen=True)
class Reader:
    """Somebody who follows the docs: a copy of what the commands read, and a kernel of their own with its map."""

    project: Project

    def run(self, line: Line) -> Finished:
        return self.project.run(*line.words[1:], COLUMNS="110")


@pytest.fixture(scope="module")
def reader(shared_project: Project) -> Reader:
    root = shared_project.root
    for folder in ("kernels", "probes", "reports"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("*.jsonl", "__pycache__"))
    (root / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    for place in ("", "kernels/"):
        shared_project.write(f"{place}my_kernel.py", (KERNELS / "plain.py").read_text())
        knobs = {"TILE": [256, 512], "UNREAD": [1, 2], "CHECKED": [1, 0]}
        told = f"KNOBS = {knobs}\nBASELINE = {dict(TILE=256, UNREAD=1, CHECKED=1)}\nARGS = {{'x': '*fp16'}}\n"
        shared_project.write(f"{place}my_kernel_probe.py", told)
    shutil.copy(KERNELS.parent.parent / "kernels/cdna4/gemm_mxfp4.py", root / "my_gemm.py")
    shared_project.write("serve.py", "import triton\n")
    shared_project.write("shipped.jsonl", shown_file("shipped.jsonl"))
    finished = shared_project.run("probe", "my_kernel.py", "--target", "cdna3,cdna4", "--depth", "joint")
    assert finished.code == 0, finished
    shutil.copy(root / "reports/my_kernel.gfx942.json", root / "before.json")
    shutil.copytree(root / "reports", root / "next/reports")
    return Reader(shared_project)


def shown_file(name: str) -> str:
    """The text that the docs show with `cat`."""
    for page in TOLD:
        for _, _, text in blocks(page):
            if found := re.search(rf"^\$ cat {re.escape(name)}\n(.*?)(?=^\$ |\Z)", text, re.MULTILINE | re.DOTALL):
                return found[1]
    raise AssertionError(f"no page shows {name}")


def triton_is_the_maps() -> bool:
    """Whether the Triton here made the committed maps: with another one, commands refuse to compile what they hold."""
    made = json.loads((REPOSITORY / "reports/cdna4/gemm_mxfp4.gfx950.json").read_bytes())["triton"]
    return importlib.metadata.version("triton") == made


@pytest.mark.parametrize("line", RUN, ids=lambda line: line.name)
def test_every_command_line_that_can_be_run_here_does_what_it_should(line: Line, reader: Reader) -> None:
    """It ends with an exit code that says so, and the output is the one that is shown."""
    if line.words[1] in ("explain", "predict", "repeat") and not triton_is_the_maps():
        pytest.skip("the committed maps are of another Triton")
    finished = reader.run(line)
    assert "Traceback" not in finished.stderr, finished
    asks_for_more = "Give a baseline" in line.shown
    assert asks_for_more == (finished.code == 2) and finished.code != 3, finished
    if line.words[1] not in ("repeat", "engaged"):  # these end as the candidate, or the program, did
        assert finished.code in (0, 1, 2), finished
    said, at = " ".join((finished.stdout + " " + finished.stderr).split()), 0
    for part in pieces(line.shown):
        assert part in said[at:], f"{line.name}: this is shown, and not said there:\n{part}\n\n{finished}"
        at = said.index(part, at) + len(part)


def pieces(shown: str) -> list[str]:
    """What is shown without a gap. A … alone, or at the end of a line, is one; so is a change of stream."""
    found = re.split(r"^\s*…\s*$|\s…\s*$|\n\s*\n", shown, flags=re.MULTILINE)
    return [" ".join(part.split()) for part in found if part.strip()]


def test_a_shown_output_is_compared_in_pieces() -> None:
    assert pieces("a  b\n c\n…\nd #ttg.slice<…> e …\nf\n\ng\n") == ["a b c", "d #ttg.slice<…> e", "f", "g"]
