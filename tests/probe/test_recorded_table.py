"""Recorded tables: reading, replaying, scoring, and `gluonmap learn --from`."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gluonmap.cli.command_group import cli
from gluonmap.model.errors import StorageFault, UsageError
from gluonmap.model.outcomes import Outcome
from gluonmap.probe.recorded_table import learn_table, make_table, read_table

DOMAINS = {
    "BLOCK_M": (16, 32, 64, 128),
    "BLOCK_N": (16, 32, 64, 128),
    "STAGES": (1, 2, 3, 4),
    "num_warps": (1, 2, 4, 8),
}


def row(config: dict[str, int]) -> dict[str, object]:
    """The verdict of a hidden rule: tiles within a budget, and enough of them for the warps."""
    if config["BLOCK_M"] * config["BLOCK_N"] * config["STAGES"] > 16384:
        return {"config": config, "outcome": "NO_RESOURCES", "reason": "tiles over budget"}
    if config["num_warps"] * 16 > config["BLOCK_M"]:
        return {"config": config, "outcome": "REJECTED", "reason": "a warp without rows"}
    return {"config": config, "outcome": "PASS"}


ROWS = [row(dict(zip(DOMAINS, values, strict=True))) for values in itertools.product(*DOMAINS.values())]


def written(folder: Path, rows: list[dict[str, object]]) -> Path:
    path = folder / "verdicts.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return path


@pytest.mark.parametrize("seed", range(4))
def test_a_hidden_rule_is_learned_exactly_from_few_rows(tmp_path: Path, seed: int) -> None:
    learned, score = learn_table(read_table(written(tmp_path, ROWS)), seed=seed)
    assert (score.precision, score.recall) == (1.0, 1.0)
    assert score.exact_from is not None
    assert score.exact_from <= 60
    assert learned.feasible == sum(each["outcome"] == "PASS" for each in ROWS)


def test_a_compressed_table_reads_like_a_plain_one(tmp_path: Path) -> None:
    plain = written(tmp_path, ROWS)
    packed = tmp_path / "verdicts.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_table(packed) == read_table(plain)


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    packed = tmp_path / "verdicts.jsonl.gz"
    packed.write_bytes(gzip.compress(b"{}" * 5000)[:40])
    with pytest.raises(StorageFault, match="verdicts"):
        read_table(packed)


def test_rows_that_a_partial_table_lacks_are_never_asked(tmp_path: Path) -> None:
    kept = [each for number, each in enumerate(ROWS) if number % 3]
    learned, _ = learn_table(read_table(written(tmp_path, kept)))
    recorded = [each["config"] for each in kept]
    assert all(asked.config in recorded for asked in learned.asked)


def test_a_configuration_with_two_outcomes_is_reported_and_never_fitted(tmp_path: Path) -> None:
    torn = {**ROWS[0], "outcome": "CRASHED"}
    table = read_table(written(tmp_path, [*ROWS, torn]))
    assert table.unstable == (ROWS[0]["config"],)
    _, score = learn_table(table)
    assert (score.precision, score.recall) == (1.0, 1.0)


def test_a_line_that_is_no_row_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, ROWS[:2])
    path.write_text(path.read_text() + '{"config": {}, "outcome": "FINE"}\n')
    with pytest.raises(UsageError, match="line 3"):
        read_table(path)


def test_rows_of_other_knobs_are_refused() -> None:
    from gluonmap.acquire import Answer

    with pytest.raises(UsageError, match="other knobs"):
        make_table("t", [({"A": 1}, Answer(Outcome.PASS)), ({"B": 1}, Answer(Outcome.PASS))])


def test_the_command_prints_the_constraints_and_their_certificate(tmp_path: Path) -> None:
    shown = CliRunner().invoke(cli, ["learn", "--from", str(written(tmp_path, ROWS))])
    assert shown.exit_code == 0
    text = " ".join(shown.output.split())
    assert "BLOCK_M * BLOCK_N * STAGES <= 16384" in text
    assert "precision 1.0000, recall 1.0000" in text
    assert "Certificate at 95% confidence" in text


def test_the_command_prints_json(tmp_path: Path) -> None:
    given = ["learn", "--from", str(written(tmp_path, ROWS)), "--baseline", "BLOCK_M=64", "--json"]
    document = json.loads(CliRunner().invoke(cli, given).stdout)
    assert document["score"]["recall"] == 1.0
    assert {each["standing"] for each in document["learned"]["constraints"]} == {"learned"}
