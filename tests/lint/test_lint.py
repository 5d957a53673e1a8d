"""Files, comments that hide findings, the command, and the examples of the docs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from linting import EVERY, TAIL, findings

from gluonmap.cli.command_group import cli
from gluonmap.lint import RULES, LintSettings, chosen_codes, lint
from gluonmap.model.errors import UsageError

REPOSITORY = Path(__file__).resolve().parents[2]


def examples() -> dict[str, list[str]]:
    """Code -> the Python examples in its section of the docs."""
    text = (REPOSITORY / "docs" / "lint.md").read_text()
    sections = re.findall(r"^### (GM\d{3}): ([^\n]+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    assert {code: title for code, title, _ in sections} == {rule.code: rule.title for rule in RULES.values()}
    return {code: re.findall(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL) for code, _, body in sections}


@pytest.mark.parametrize("code", RULES)
def test_the_docs_have_a_bad_and_a_good_example_of_each_code(tmp_path: Path, code: str) -> None:
    kinds = [
        (example.split("\n")[0], {item.code for item in findings(tmp_path, example)}) for example in examples()[code]
    ]
    good = [] if code == "GM001" else [("# good", set[str]())]
    assert kinds == [("# bad", {code}), *good]


def test_the_output_in_the_docs_is_what_is_printed() -> None:
    shown = (REPOSITORY / "docs" / "lint.md").read_text()
    assert RULES["GM202"].title in shown
    assert re.search(
        r"^\S+\.py:\d+:\d+ GM202 this store has no mask for offs_m, .*\.\n    Fix: .*\.$", shown, re.MULTILINE
    )


def test_the_projects_own_kernels_probes_and_benchmarks_are_clean() -> None:
    result = lint([REPOSITORY / name for name in ("kernels", "probes", "benchmarks", "gluonmap")], EVERY)
    assert [(item.path, item.line, item.code) for item in result.findings] == []
    assert (result.files, result.ignored) == (result.files, 0)


BAD = "import triton\na = triton.Config({}, kpack=2)"


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("  # gluonmap: ignore[GM101]", []),
        ("  # why not  # gluonmap: ignore", []),
        ("  # gluonmap: ignore[GM102, GM101]", []),
        ("  # gluonmap: ignore[GM102]", ["GM101", "GM002"]),
        ("  # gluonmap: ignore[GM101, GM999]", ["GM002"]),
        ("\nb = '# gluonmap: ignore[GM101]'", ["GM101"]),
    ],
)
def test_a_comment_hides_what_it_names_at_its_line(tmp_path: Path, comment: str, expected: list[str]) -> None:
    assert [item.code for item in findings(tmp_path, f"{BAD}{comment}\n")] == expected


def test_a_comment_alone_on_its_line_hides_the_next_line_and_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(BAD.replace("\n", "\n# gluonmap: ignore[GM101]: an example\n"))
    result = lint([path])
    assert (result.findings, result.ignored) == ((), 1)


def test_a_comment_for_a_code_that_is_not_looked_for_is_no_finding(tmp_path: Path) -> None:
    text = "import triton\na = 1  # gluonmap: ignore[GM203]\n"
    assert findings(tmp_path, text, LintSettings()) == ()
    assert [item.code for item in findings(tmp_path, text)] == ["GM002"]


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'\n", "(" * 5000 + ")" * 5000, "match x:\n  case\n"])
def test_what_cannot_be_parsed_is_one_finding(tmp_path: Path, text: str) -> None:
    (item,) = findings(tmp_path, text)
    assert (item.code, item.line >= 1, item.column >= 1) == ("GM001", True, True)


def test_an_expression_of_thousands_of_terms_is_one_finding_too(tmp_path: Path) -> None:
    text = TAIL.format(line="x = " + " + ".join(["K"] * 3000), mask="rows < M", host="").replace(
        "row = pid", "row = x + pid"
    )
    (item,) = findings(tmp_path, text)
    assert (item.code, "recursion" in item.message) == ("GM001", True)


def test_folders_are_searched_for_files_that_mention_triton(tmp_path: Path) -> None:
    for name in ("a.py", "sub/b.py", ".venv/c.py", "sub/notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BAD)
    (tmp_path / "plain.py").write_text("def f(:\n")
    result = lint([tmp_path, tmp_path / "a.py"])
    assert [Path(item.path).name for item in result.findings] == ["a.py", "b.py"]
    assert result.files == 2


def test_a_file_without_triton_is_only_parsed_if_the_user_names_it(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n")
    (tmp_path / "other.py").write_text("import torch\nNAME = torch.cuda.get_device_name(0)\n")
    assert lint([tmp_path]).files == 0
    named = lint([tmp_path / "broken.py", tmp_path / "other.py"])
    assert ([item.code for item in named.findings], named.files) == (["GM001"], 2)


def test_paths_that_are_none_are_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"cannot read .*none\.py: No such file or directory\."):
        lint([tmp_path / "none.py"])
    with pytest.raises(UsageError, match=r"there is no Python file below .*empty\."):
        lint([tmp_path / "empty"])


def test_codes_are_chosen_by_their_beginnings() -> None:
    assert chosen_codes("GM10", "gm101,GM106") == {"GM102", "GM103", "GM104", "GM105"}
    assert chosen_codes("GM", "") == RULES.keys()
    assert chosen_codes("", "GM2") == RULES.keys() - {"GM201", "GM202", "GM203", "GM204"}
    with pytest.raises(UsageError, match=r"--ignore has no code 'GM9' \(there are GM001, "):
        chosen_codes("", "GM9")


def test_the_command_prints_a_line_and_its_fix_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py")])
    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            f"{tmp_path.as_posix()}/k.py:2:23 GM101 triton.Config takes no keyword kpack: it raises TypeError when the "
            "file is imported.",
            '    Fix: write it into the first argument: Config({…, "kpack": 2}, …).',
            "1 finding in 1 of 1 file",
        ],
    )
    clean = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py"), "--ignore", "GM1"])
    assert (clean.exit_code, clean.stdout) == (0, "nothing found in 1 file\n")


def test_the_command_prints_json(tmp_path: Path) -> None:
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path), "--json"])
    document = json.loads(result.stdout)
    assert (result.exit_code, document["schema"], document["files"], document["ignored"]) == (
        1,
        "gluonmap.lint/1",
        1,
        0,
    )
    assert document["findings"] == [
        {
            "path": f"{tmp_path.as_posix()}/k.py",
            "line": 2,
            "column": 23,
            "code": "GM101",
            "message": "triton.Config takes no keyword kpack: it raises TypeError when the file is imported",
            "mend": 'write it into the first argument: Config({…, "kpack": 2}, …)',
        }
    ]


def test_usage_ends_with_2_and_one_sentence(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "none.py")])
    assert (result.exit_code, result.stderr) == (
        2,
        f"gluonmap: cannot read {tmp_path / 'none.py'}: No such file or directory.\n",
    )


def test_in_github_actions_findings_are_annotations_and_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    (tmp_path / "k.py").write_text(BAD)
    result = CliRunner().invoke(cli, ["lint", str(tmp_path / "k.py"), "--json"])
    assert json.loads(result.stdout)["files"] == 1
    assert result.stderr.startswith("::warning file=k.py,line=2,title=GM101::triton.Config takes no keyword kpack: ")
    assert "%0AFix: write it into the first argument" in result.stderr
    text = page.read_text()
    assert text.startswith("### gluonmap lint: 1 finding in 1 of 1 file\n")
    assert "| GM101 | an AMD knob is a keyword of triton.Config | 1 |" in text


def test_text_of_files_acts_on_no_terminal(tmp_path: Path) -> None:
    path = tmp_path / "k\x1b[31m.py"
    path.write_text("import triton\na = triton.Config({}, kpack='\x1b[2J')\n")
    result = CliRunner().invoke(cli, ["lint", str(path)])
    assert (result.exit_code, "\x1b" in result.stdout) == (1, False)


def test_the_hook_for_pre_commit_runs_the_command_that_exists() -> None:
    hook = (REPOSITORY / ".pre-commit-hooks.yaml").read_text()
    scripts = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["scripts"]
    assert re.findall(r"^(?:- |  )(id|entry|language): (.+)$", hook, re.MULTILINE) == [
        ("id", "gluonmap-lint"),
        ("entry", "gluonmap lint"),
        ("language", "python"),
    ]
    assert "gluonmap" in scripts
    assert "lint" in cli.commands


@pytest.mark.parametrize(
    "data", [b"# coding: rot13\nimport triton\n", b"# coding: nosuch\nimport triton\n", b"import triton  # \xe9\xff\n"]
)
def test_a_file_that_python_cannot_read_is_a_finding_and_other_files_are_read(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "broken.py").write_bytes(data)
    (tmp_path / "other.py").write_text("import triton\nDEVICE = triton.runtime.driver.active.get_current_target()\n")
    done = CliRunner().invoke(cli, ["lint", str(tmp_path), "--json"])
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)
    assert {(Path(f["path"]).name, f["code"]) for f in found["findings"]} == {
        ("broken.py", "GM001"),
        ("other.py", "GM301"),
    }
