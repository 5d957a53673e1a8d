"""docs/architecture.md against the tree, and the figures of benchmarks/house.py against their limits."""

from __future__ import annotations

import ast
import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from project import REPOSITORY

PACKAGE = REPOSITORY / "gluonmap"
TEXT = (REPOSITORY / "docs/architecture.md").read_text()
PACKAGES = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
MOST_NAMES = 24
MOST_LINES = 500
MOST_LAYERS = 12
MOST_REPEATED_CLASSES = 10


def load_house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("house", REPOSITORY / "benchmarks/house.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["house"] = module  # dataclasses look their module up by name
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def house() -> ModuleType:
    return load_house()


def contract() -> list[set[str]]:
    """The packages of each layer, the uppermost first."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(c for c in settings if c["type"] == "layers")["layers"]
    return [{name.strip() for name in layer.split("|")} for layer in layers]


def documented() -> list[tuple[int, str, str]]:
    """Layer, package and duty of each row of the table of packages."""
    section = TEXT.partition("## The packages")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| `(\w+)/` \| (.+?) \|$", section, re.MULTILINE)
    return [(int(layer), package, duty) for layer, package, duty in rows]


def test_every_package_has_one_row_and_every_row_a_package() -> None:
    assert sorted(package for _, package, _ in documented()) == PACKAGES


def test_the_layers_are_those_of_the_import_contract() -> None:
    layers: dict[int, set[str]] = {}
    for layer, package, _ in documented():
        layers.setdefault(layer, set()).add(package)
    assert [layers[number] for number in sorted(layers)] == contract()
    assert sorted(layers) == list(range(1, len(layers) + 1))


def test_every_file_that_is_named_exists() -> None:
    named = {name for name in re.findall(r"`([\w/.-]+)`", TEXT) if "/" in name or name.endswith(".py")}
    named -= {"tests/doubles/fake_device.py", "pyproject.toml"}
    missing = sorted(n for n in named if not (PACKAGE / n).exists() and not n.startswith("probes/"))
    assert not missing
    assert (REPOSITORY / "tests/doubles/fake_device.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_the_init_of_a_package_says_its_duty_what_it_imports_and_where_to_begin(package: str) -> None:
    text = ast.get_docstring(ast.parse((PACKAGE / package / "__init__.py").read_text())) or ""
    assert len(text.splitlines()[0]) > 20
    assert re.search(r"\bimport", text), "it does not say what the package may import"
    begin = re.search(r"\bBegin with `([\w/]+\.py)`", text)
    assert begin, "it does not say where to begin reading: Begin with `file.py`"
    assert (PACKAGE / package / begin[1]).is_file()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_has_tests_in_a_folder_of_its_name(package: str) -> None:
    assert any((REPOSITORY / "tests" / package).rglob("test_*.py"))


def test_the_house_keeps_its_limits(house: ModuleType) -> None:
    tree = house.read_tree(PACKAGE)
    assert len(house.names_at_top(tree)) <= MOST_NAMES
    assert {name: n for name, n in tree.lines().items() if n > MOST_LINES} == {}
    assert len(house.layers(REPOSITORY)) <= MOST_LAYERS
    assert len(house.repeated_classes(tree)) <= MOST_REPEATED_CLASSES
    assert house.long_docstring_lines(tree) == 0


def test_targets_outcomes_and_formats_are_listed_in_one_place(house: ModuleType) -> None:
    tree = house.read_tree(PACKAGE)
    assert house.target_names(tree) == ["model/targets.py"]
    assert house.outcome_lists(tree) == ["model/outcomes.py"]
    assert house.format_names(tree) == ["export/registry.py"]


def test_two_classes_of_one_name_are_found(tmp_path: Path, house: ModuleType) -> None:
    (tmp_path / "one.py").write_text("class Twice: ...\nclass Once: ...\n")
    (tmp_path / "two.py").write_text("def f():\n    class Twice: ...\n")
    assert house.repeated_classes(house.read_tree(tmp_path)) == {"Twice": ["one.py", "two.py"]}


def test_a_file_that_lists_outcomes_is_found(tmp_path: Path, house: ModuleType) -> None:
    (tmp_path / "marks.py").write_text("MARKS = {Outcome.PASS: 1, Outcome.HUNG: 2, Outcome.WRONG: 3}\n")
    (tmp_path / "pair.py").write_text("BOTH = (Outcome.PASS, Outcome.HUNG)\n")
    assert house.outcome_lists(house.read_tree(tmp_path)) == ["marks.py"]
