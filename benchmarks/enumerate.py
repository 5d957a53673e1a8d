"""Record the verdicts of a whole space: one row for every configuration of a kernel, for `gluonmap learn --from`.

    python benchmarks/enumerate.py KERNEL.py --target gfx950 [flags of gluonmap probe] --out TABLE.jsonl[.gz]
        [--limit N] [--journal-root DIR] [--role ROLE --origin OWNER/REPO/PATH --commit SHA]

The knobs are those given with `--domain`, else all that `gluonmap probe` would turn. An interrupted run continues
where it stopped. With `--role`, the table's counts go to `index.json` next to it.
"""

from __future__ import annotations

import gzip
import itertools
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec

sys.path.insert(0, str(Path(__file__).parent.parent))

from gluonmap.cli.kernel_options import settings_of
from gluonmap.cli.probe import probe
from gluonmap.model import codec, targets
from gluonmap.model.candidate import Candidate, Config, Proof
from gluonmap.model.errors import GluonmapError
from gluonmap.model.verdict import Answer, Fault, Verdict
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.session import open_session
from gluonmap.runner import journal
from gluonmap.runner.oracle import Oracle
from gluonmap.runner.processes import Isolation
from gluonmap.spec.description import Description
from gluonmap.spec.description_builder import describe

TEXT = 200
OWN = ("out", "as_json", "python")
"""Options of `gluonmap probe` that have another meaning here, or none."""


@dataclass(frozen=True)
class Enumerated:
    """A space and the outcome of each configuration."""

    function: str
    triton: str
    rows: list[dict[str, Any]]
    faults: list[str]
    """Texts of the configurations without an answer, which have no row."""


def enumerate_space(campaign: Campaign, target: targets.Target, limit: int | None) -> Enumerated:
    """Ask every configuration, and return the rows in the order of the product."""
    with open_session(campaign, target) as session:
        inspection, overrides = session.head.inspection, campaign.overrides(session.probe)
        description = describe(inspection, target, session.probe, overrides)
        configs = list(itertools.islice(product(description, list(overrides.domains)), limit))
        candidates = [msgspec.structs.replace(description.candidate(c), proof=Proof.IR) for c in configs]
        answers = ask(session.oracle, description.candidate({}), candidates)
    rows, faults = [], []
    for config, candidate in zip(configs, candidates, strict=True):
        answer = answers[journal.key_of(candidate)]
        if isinstance(answer, Fault):
            faults.append(answer.text)
        else:
            rows.append(row(config, candidate, answer))
    return Enumerated(inspection.function, campaign.triton, rows, faults)


def product(description: Description, wanted: list[str]) -> Iterator[Config]:
    """Return every configuration of the wanted knobs, or of all knobs if none is named."""
    knobs = [k for k in description.knobs.values() if not wanted or k.name in wanted]
    for values in itertools.product(*(k.domain for k in knobs)):
        yield {k.name: value for k, value in zip(knobs, values, strict=True)}


def ask(oracle: Oracle, baseline: Candidate, candidates: list[Candidate]) -> dict[str, Answer]:
    """Return the answers by the candidates' keys. The oracle has already asked a faulty candidate again, alone."""
    answers: dict[str, Answer] = {}
    (first,) = oracle.ask([baseline])
    if isinstance(first.answer, Verdict) and first.answer.exit_status == 0:
        oracle = oracle.with_baseline(baseline)
    print("baseline:", shown(first.answer), file=sys.stderr, flush=True)
    start = time.monotonic()
    distinct = {journal.key_of(c): c for c in candidates}
    for number, reply in enumerate(oracle.ask(distinct.values()), 1):
        answers[journal.key_of(reply.candidate)] = reply.answer
        if number % 50 == 0 or number == len(distinct):
            counts = Counter(a.outcome.value if isinstance(a, Verdict) else "no answer" for a in answers.values())
            seconds = time.monotonic() - start
            print(f"{number} of {len(distinct)} in {seconds:.0f} s: {dict(counts)}", file=sys.stderr, flush=True)
    return answers


def shown(answer: Answer) -> str:
    if isinstance(answer, Fault):
        return f"no answer: {answer.text}"
    reason = answer.reason
    return f"{answer.outcome} in {answer.seconds:.2f} s" + (f": {reason.kind}: {reason.text}" if reason else "")


def row(config: Config, candidate: Candidate, verdict: Verdict) -> dict[str, Any]:
    """Return one line of the table. `gluonmap.probe.recorded_table` describes its fields."""
    found: dict[str, Any] = {"config": config, "outcome": verdict.outcome.value}
    if reason := verdict.reason:
        found["stage"] = reason.phase
        found["reason"] = f"{reason.kind}: {reason.text}".splitlines()[0][:TEXT]
        if place := reason.location:
            found["line"] = f"{place.function}+{place.line}"
    elif verdict.program:
        # The same code with another grid or other arguments is another launch.
        found["digest"] = codec.digest([verdict.program.digest, candidate.grid, candidate.args])[:12]
    if verdict.resources:
        found["shared_bytes"] = verdict.resources.shared_bytes
    return found


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in rows).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)


def note_in_index(path: Path, found: Enumerated, entry: dict[str, Any]) -> None:
    index = path.parent / "index.json"
    entries = json.loads(index.read_text()) if index.exists() else {}
    entries[path.name.removesuffix(".gz").removesuffix(".jsonl")] = entry | {
        "triton": found.triton,
        "rows": len(found.rows),
        "passing": sum(r["outcome"] == "PASS" for r in found.rows),
        "programs": len({r["digest"] for r in found.rows if "digest" in r}),
        "faults": len(found.faults),
    }
    index.write_text(json.dumps(entries, indent=1) + "\n")


def run(kernel_file: Path, **options: Any) -> None:
    settings = settings_of(kernel_file, options | {"out": options["journal_root"]})
    if len(options["target"]) != 1:
        raise click.UsageError("name one target with --target.")
    target = targets.find(options["target"][0])
    try:
        with Isolation(jobs=settings.jobs) as isolation:
            campaign = Campaign(settings, isolation, lambda event: None)
            found = enumerate_space(campaign, target, options["limit"])
    except GluonmapError as error:
        raise click.ClickException(str(error)) from error
    if not found.rows:
        raise click.ClickException("no configuration had an answer.")
    path = options["table"]
    write(path, found.rows)
    if options["role"] and not options["limit"]:
        kernel = f"{options['origin']}:{found.function}"
        entry = {"role": options["role"], "kernel": kernel, "commit": options["commit"], "target": target.name}
        note_in_index(path, found, entry)
    outcomes = Counter(r["outcome"] for r in found.rows)
    print(f"{path}: {len(found.rows)} rows, {dict(outcomes)}, {len(found.faults)} without an answer", file=sys.stderr)
    for text, times in Counter(found.faults).most_common(5):
        print(f"  {times} × {text}", file=sys.stderr)


def command() -> click.Command:
    """Return the command: `gluonmap probe` with other results."""
    text = click.Path(path_type=Path)
    own = [
        click.Option(["--out", "table"], type=text, required=True, help="The table to write."),
        click.Option(["--limit"], type=click.IntRange(1), help="Ask only the first N configurations."),
        click.Option(
            ["--journal-root"],
            type=text,
            default=Path(tempfile.gettempdir()) / "gluonmap-tables",
            help="Folder of the journals from which an interrupted run continues.",
        ),
        click.Option(["--role"], default="", help="Role of the table in index.json."),
        click.Option(["--origin"], default="", help="Where the kernel comes from: owner/repository path."),
        click.Option(["--commit"], default="", help="Its commit."),
    ]
    params = [p for p in probe.params if p.name not in OWN] + own
    return click.Command("enumerate", params=params, callback=run, help=__doc__)


if __name__ == "__main__":
    command()()
