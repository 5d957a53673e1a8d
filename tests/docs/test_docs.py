"""What README.md and docs/ say is so: command lines run, outputs are shown as they are, links lead somewhere."""

from __future__ import annotations

import html
import importlib.metadata
import importlib.util
import itertools
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
from types import ModuleType

import click
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from project import REPOSITORY, Finished, Project
from rich.text import Text

from gluonmap.cli.command_group import cli

PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(str(p.relative_to(REPOSITORY)) for p in REPOSITORY.glob("docs/**/*.md")),
)
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
    """Command lines: all of `sh` blocks, `run:` steps of workflows, and what stands after `$` in an output."""
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
            if word.startswith(mark) or (mark == "$target" and mark in word):
                return why
    return ""


def too_much(line: Line) -> str:
    """Why a command line is not run here although all that it names is there; "" if it can be run."""
    name, words = line.words[1], line.words[2:]
    if name == "race" or "--measure" in words or {"launch", "check", "time"} & set(words):
        return "it needs a GPU"
    if "--repro" in words:
        return "it installs Triton again; tests/repro/test_repro.py runs it"
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
    assert ("gluonmap", "probe", "kernels/cdna4/gemm_mxfp4.py", "--target", "gfx950", "--out", "first-map") in words
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
MAPPING = ("gluonmap", "probe", "my_kernel.py", "--target", "cdna3,cdna4")
"""What the README says to do with it; the other commands read what that leaves."""
MY_PROBE = """
KNOBS = {"BLOCK_M": [128, 256, 512]}
BASELINE = {"BLOCK_M": 128}
ARGS = {"a_ptr": "*fp32"}
"""


@pytest.fixture(scope="module")
def reader(shared_project: Project) -> Project:
    """Where a reader of the docs stands: kernels and maps of this repository, and a kernel of their own, mapped."""
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
    finished = shared_project.run(*MAPPING[1:])
    assert finished.code == 0, finished
    shutil.copy(root / "reports/my_kernel.gfx942.json", root / "before.json")
    shared_project.write("next/reports/my_kernel.gfx942.json", (root / "before.json").read_bytes())
    return shared_project


@pytest.fixture(scope="module")
def runs(reader: Project, request: pytest.FixtureRequest) -> Iterator[dict[tuple[str, ...], Future[Finished]]]:
    """What becomes of each command line that some test wants, each run once, a few at a time."""
    chosen = [item.callspec.params.get("line") for item in request.session.items if hasattr(item, "callspec")]
    wanted = {line.words for line in chosen if isinstance(line, Line) and not skipped(line)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with ThreadPoolExecutor(3) as pool:
        yield {words: pool.submit(reader.run, *words[1:], COLUMNS="100", PATH=path) for words in sorted(wanted)}


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


@pytest.mark.long
@pytest.mark.parametrize("line", RUN, ids=lambda line: line.name)
def test_every_command_line_that_can_be_run_here_does_what_it_should(
    line: Line, runs: dict[tuple[str, ...], Future[Finished]]
) -> None:
    """It ends with an exit code that says so, and the output is the one that is shown."""
    if line.words[1] in ("explain", "predict", "repeat") and not triton_is_the_maps():
        pytest.skip("the committed maps are of another Triton")
    if line.words[1] == "run" and importlib.util.find_spec("torch") is None:
        pytest.skip("the inputs of probe files are made with torch, which is not installed")
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


# Python


def python_blocks() -> Iterator[tuple[str, int, str]]:
    """Page, line and text of what is marked as Python, but for what shows a mistake (`# bad`)."""
    for page in TOLD:
        for language, number, text in blocks(page):
            if language == "python" and not text.startswith("# bad"):
                yield page, number, text


def excerpt_of(text: str) -> str:
    """The file of this repository that the first line of a block names: the block is an excerpt of it. Else ""."""
    found = re.match(r"# (\S+\.py)\n", text)
    return found[1] if found and (REPOSITORY / found[1]).exists() else ""


@pytest.mark.parametrize(("page", "number", "text"), list(python_blocks()))
def test_python_is_python_and_excerpts_are_what_the_file_says(page: str, number: int, text: str) -> None:
    compile(text, f"{page}:{number}", "exec")
    if file := excerpt_of(text):
        whole = " ".join((REPOSITORY / file).read_text(encoding="utf-8").split())
        for part in re.split(r"^\s*# …$", text.partition("\n")[2], flags=re.MULTILINE):
            assert " ".join(part.split()) in whole, f"{page}:{number}: {file} has no {part}"


def test_python_runs_where_it_needs_no_gpu(reader: Project) -> None:
    """Each block as a file of its own, in one process: importing Triton takes a second."""
    names = []
    for page, number, text in python_blocks():
        if not excerpt_of(text):
            names.append(f"blocks/{page.replace('/', '_')}_{number}.py")
            reader.write(names[-1], text)
    assert len(names) > 5
    driver = f"import runpy\nfor name in {names!r}:\n    print(name, flush=True)\n    runpy.run_path(name)\n"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    ended = subprocess.run(
        [sys.executable, "-c", driver], cwd=reader.root, env=environment, capture_output=True, text=True, timeout=120
    )
    assert ended.returncode == 0, f"{ended.stdout.splitlines()[-1:]}: {ended.stderr}"


# Commands and pages


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_every_command_has_a_row_in_the_readme_and_a_command_line_on_a_page(name: str) -> None:
    assert f"\n| `gluonmap {name}" in text_of("README.md"), f"README.md has no row for gluonmap {name}"
    pages = {line.page for line in LINES if line.words[1] == name}
    assert any(page.startswith("docs/") and "/reference/" not in page for page in pages), (
        f"no page shows gluonmap {name}"
    )


@pytest.mark.parametrize("page", TOLD)
def test_commands_and_options_named_in_a_sentence_are_there(page: str) -> None:
    for token in inline(page):
        words = token.content.split() if token.type == "code_inline" else []
        if words[:1] != ["gluonmap"] or len(words) < 2 or not re.fullmatch(r"[a-z-]+", words[1]):
            continue
        command = cli.commands.get(words[1])
        assert command is not None, f"{page}: there is no command {token.content}"
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        for word in words[2:]:
            if word == "--":
                break
            if word.startswith("-"):
                assert word.partition("=")[0] in known | {"--help"}, f"{page}: {token.content}"


def test_every_page_is_in_the_sites_navigation() -> None:
    listed = re.findall(r": (\S+\.md)$", text_of("mkdocs.yml"), re.MULTILINE)
    there = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted(there), "mkdocs.yml lists every page once"


def slugs_of(page: str) -> set[str]:
    """The anchors of a page, as GitHub names them."""
    found: dict[str, int] = {}
    tokens = tokens_of(page)
    for heading, token in itertools.pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(part.content for part in token.children or ())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{n}" if n else slug for slug, most in found.items() for n in range(most + 1)}


@pytest.mark.parametrize("page", PAGES)
def test_every_link_within_the_repository_leads_somewhere(page: str) -> None:
    for token in inline(page):
        target = token.attrGet("href") or token.attrGet("src")
        if not isinstance(target, str) or re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        place = (REPOSITORY / page).parent / file if file else REPOSITORY / page
        assert place.exists(), f"{page}: nothing is at {target}"
        name = str(place.resolve().relative_to(REPOSITORY))
        if page.startswith("docs/"):
            assert name.startswith("docs/"), f"{page}: on the site nothing is at {target}; write it as code"
        if anchor:
            assert anchor in slugs_of(name), f"{page}: {name} has no heading #{anchor}"


# What is written by scripts


def script(name: str) -> ModuleType:
    """A script of docs/, imported."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", REPOSITORY / f"docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_code_says() -> None:
    pages = script("reference").pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs/reference").iterdir()}
    assert sorted(there) == sorted(pages)
    stale = [name for name, text in pages.items() if there[name] != text]
    assert not stale, f"run `python docs/reference.py`: {', '.join(stale)} would change"


def test_the_picture_shows_what_the_report_says() -> None:
    """Its words, not its bytes: how rich draws them is rich's affair."""
    picture = script("picture")
    drawn = re.sub(r"<[^>]+>", "", text_of("docs/images/map.svg").partition("</defs>")[2])
    plain = [Text.from_ansi(line).plain for line in picture.shortened(picture.report())]
    wanted = f"gluonmap$ {picture.COMMAND}" + "".join(plain)
    assert "".join(html.unescape(drawn).split()) == "".join(wanted.split()), "run `python docs/picture.py`"
