"""How many rooms the package has, and how many places a change of one table must touch.

    python benchmarks/house.py [--package gluonmap]

Prints one row per measure. `tests/docs/test_architecture.py` holds the same figures against their limits.
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tabulate import tabulate

REPOSITORY = Path(__file__).resolve().parent.parent
ENUMERATES = 3
"""Members named in one expression from which on the expression restates the table."""


@dataclass(frozen=True)
class Tree:
    """The syntax trees of a package, by path relative to it."""

    root: Path
    files: dict[str, ast.Module]

    def lines(self) -> dict[str, int]:
        """Return the number of lines of each file."""
        return {name: len((self.root / name).read_text().splitlines()) for name in self.files}


def read_tree(root: Path) -> Tree:
    """Parse every Python file below `root`."""
    paths = sorted(root.rglob("*.py"))
    return Tree(root, {str(p.relative_to(root)): ast.parse(p.read_text()) for p in paths})


def names_at_top(tree: Tree) -> list[str]:
    """Return the modules and packages directly below the package."""
    return sorted({name.split("/")[0].removesuffix(".py") for name in tree.files})


def repeated_classes(tree: Tree) -> dict[str, list[str]]:
    """Return the class names that two or more files define, with those files."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, module in tree.files.items():
        for node in {n.name for n in ast.walk(module) if isinstance(n, ast.ClassDef)}:
            found[node].append(name)
    return {name: files for name, files in sorted(found.items()) if len(files) > 1}


def layers(repository: Path) -> list[str]:
    """Return the layers of the import contract, the uppermost first."""
    contracts = tomllib.loads((repository / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return next(list(c["layers"]) for c in contracts if c["type"] == "layers")


def long_docstring_lines(tree: Tree, width: int = 120) -> int:
    """Return how many lines of the package are longer than `width` columns."""
    texts = ((tree.root / name).read_text().splitlines() for name in tree.files)
    return sum(len(line) > width for lines in texts for line in lines)


def what_docstrings(tree: Tree) -> int:
    """Return how many docstrings begin with "What"."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = (n for module in tree.files.values() for n in ast.walk(module) if isinstance(n, kinds))
    return sum((ast.get_docstring(node) or "").startswith("What ") for node in nodes)


def target_names(tree: Tree) -> list[str]:
    """Return the files that hold the exact name of a target as a string, outside docstrings.

    `cdna/` is left out: it imports nothing of the package, so it cannot read the table. It holds the instruction sets
    that it executes as its own facts, and tests/model/test_targets.py compares its targets with the table.
    """
    from gluonmap.model.targets import TARGETS

    known = {target.name for target in TARGETS} | {target.alias for target in TARGETS if target.alias}
    found = _files(tree, lambda node: isinstance(node, ast.Constant) and node.value in known)
    return [name for name in found if not name.startswith("cdna/")]


def outcome_lists(tree: Tree) -> list[str]:
    """Return the files with a dictionary, tuple, set or `match` that names several outcomes."""

    def names_several(node: ast.AST) -> bool:
        parts: Iterator[ast.AST] | list[ast.AST]
        match node:
            case ast.Dict(keys=keys):
                parts = [key for key in keys if key is not None]
            case ast.Tuple(elts=elements) | ast.Set(elts=elements) | ast.List(elts=elements):
                parts = list(elements)
            case ast.Match(cases=cases):
                parts = [part for case in cases for part in ast.walk(case.pattern)]
            case _:
                return False
        return sum(_is_outcome(part) for part in parts) >= ENUMERATES

    return _files(tree, names_several)


def format_names(tree: Tree) -> list[str]:
    """Return the files that hold the exact name of an export format as a string."""
    from gluonmap.export.registry import EXPORTERS

    return _files(tree, lambda node: isinstance(node, ast.Constant) and node.value in set(EXPORTERS) - {"python"})


def _is_outcome(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Outcome"


def _files(tree: Tree, wanted: Callable[[ast.AST], bool]) -> list[str]:
    return [name for name, module in tree.files.items() if any(wanted(node) for node in ast.walk(module))]


def rows(repository: Path) -> list[tuple[str, object, str]]:
    """Return measure, figure and details of the package in a checkout."""
    tree = read_tree(repository / "gluonmap")
    sizes = Counter(tree.lines())
    largest, lines = sizes.most_common(1)[0]
    repeated = repeated_classes(tree)
    return [
        ("names at the package's top", len(names_at_top(tree)), ""),
        ("lines of the largest file", lines, largest),
        ("layers in the contract", len(layers(repository)), ""),
        ("class names in two or more files", len(repeated), ", ".join(repeated)),
        ("docstrings that begin with “What”", what_docstrings(tree), ""),
        ("files that name a target", len(found := target_names(tree)), ", ".join(found)),
        ("files that list outcomes", len(found := outcome_lists(tree)), ", ".join(found)),
        ("files that name an export format", len(found := format_names(tree)), ", ".join(found)),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repository", type=Path, default=REPOSITORY)
    print(tabulate(rows(parser.parse_args().repository), headers=("measure", "now", "where"), tablefmt="github"))


if __name__ == "__main__":
    main()
