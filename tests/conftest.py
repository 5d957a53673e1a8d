"""A project folder of its own for each test, and the tool run in it as a user runs it."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Helpers that assert need the messages that pytest writes for assertions, as test modules have them. Before any import.
pytest.register_assert_rewrite("results", *(path.stem for path in Path(__file__).parent.glob("doubles/*.py")))

from project import Finished, Project  # noqa: E402


def _project() -> Iterator[Project]:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed here: nothing can be compiled")
    project = Project()
    yield project
    project.close()


@pytest.fixture
def project() -> Iterator[Project]:
    """An empty project; after the test no process and no temporary file of its runs may be left."""
    yield from _project()


@pytest.fixture(scope="module")
def shared_project() -> Iterator[Project]:
    """A project that the tests of a module share, for runs that they only look at."""
    yield from _project()


@pytest.fixture
def run_cli(project: Project) -> Callable[..., Finished]:
    """`python -m gluonmap …` in the test's project."""
    return project.run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample-slow", type=int, default=0, help="of the slow tests run this many, always the same ones")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a seeded sample of the slow tests, where one is asked for."""
    wanted = config.getoption("--sample-slow")
    slow = [item for item in items if item.get_closest_marker("slow")]
    if not wanted or len(slow) <= wanted:
        return
    kept = set(random.Random(0).sample(range(len(slow)), wanted))
    dropped = {id(item) for place, item in enumerate(slow) if place not in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
    items[:] = [item for item in items if id(item) not in dropped]
