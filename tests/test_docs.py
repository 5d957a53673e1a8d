"""What README.md and docs/ say is so: command lines run, outputs are shown as they are, links lead somewhere."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import click
import pytest
from conftest import REPOSITORY, Finished, Project
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
            if word.startswith(mark) or mark.startswith("$") and mark in word:
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


def skipped(line: Line) -> str:
    """Why a command line is parsed and not run."""
    return "" if line.command is None else readers_own(line) or too_much(line)


RUN = [line for line in LINES if not skipped(line)]


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


MY_KERNEL = """
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK_M": size}, num_warps=4) for size in (128, 256)], key=["n"])
@triton.jit
def my_kernel(a_ptr, n, BLOCK_M: tl.constexpr):
    tl.static_assert(BLOCK_M <= 256)
    i = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    tl.store(a_ptr + i, tl.load(a_ptr + i, mask=i < n) * 2, mask=i < n)
"""
MY_PROBE = """
KNOBS = {"BLOCK_M": [128, 256, 512]}
BASELINE = {"BLOCK_M": 128}
ARGS = {"a_ptr": "*fp32"}
"""


@pytest.fixture(scope="module")
def reader(shared_project: Project) -> Project:
    """Where a reader of the docs stands: kernels and maps of this repository, and a kernel of their own with its maps."""
    root = shared_project.root
    for folder in ("kernels", "probes"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("*.jsonl", "__pycache__"))
    for name in {word for line in LINES for word in line.words if re.match(r"reports/.*\.json$", word)}:
        if (REPOSITORY / name).exists():
            shared_project.write(name, (REPOSITORY / name).read_bytes())
    (root / "benchmarks").symlink_to(REPOSITORY / "benchmarks")
    for place in ("", "kernels/"):
        shared_project.write(f"{place}my_kernel.py", MY_KERNEL)
        shared_project.write(f"{place}my_kernel_probe.py", MY_PROBE)
    shared_project.write("my_gemm.py", (REPOSITORY / "kernels/cdna4/gemm_mxfp4.py").read_bytes())
    shared_project.write("serve.py", "import triton\n")
    shared_project.write("shipped.jsonl", shown_file("shipped.jsonl"))
    finished = shared_project.run("probe", "my_kernel.py", "--target", "cdna3,cdna4")
    assert finished.code == 0, finished
    shutil.copy(root / "reports/my_kernel.gfx942.json", root / "before.json")
    shared_project.write("next/reports/my_kernel.gfx942.json", (root / "before.json").read_bytes())
    return shared_project


@pytest.fixture(scope="module")
def runs(reader: Project, request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, ...], Future[Finished]]]:
    """What became of each command line that some test wants, each run once, two at a time."""
    chosen = [item.callspec.params.get("line") for item in request.session.items if hasattr(item, "callspec")]
    wanted = {line.words for line in chosen if isinstance(line, Line) and not skipped(line)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with ThreadPoolExecutor(2) as pool:
        yield {words: pool.submit(reader.run, *words[1:], COLUMNS="110", PATH=path) for words in sorted(wanted)}


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
def test_every_command_line_that_can_be_run_here_does_what_it_should(
    line: Line, runs: dict[tuple[str, ...], Future[Finished]]
) -> None:
    """It ends with an exit code that says so, and the output is the one that is shown."""
    if line.words[1] in ("explain", "predict", "repeat") and not triton_is_the_maps():
        pytest.skip("the committed maps are of another Triton")
    finished = runs[line.words].result()
    asks_for_more = "Give a baseline" in line.shown
    assert (finished.code == 2) == asks_for_more, finished
    assert finished.code != 3, finished
    if line.words[1] != "repeat":  # this ends as the candidate does
        assert 0 <= finished.code <= 2, finished
        assert "Traceback" not in finished.stderr, finished
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
