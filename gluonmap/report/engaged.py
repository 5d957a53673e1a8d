"""The answer of `gluonmap engaged`, as text."""

from __future__ import annotations

from collections.abc import Sequence

from gluonmap.launches import Ended, Launched, MapVerdict
from gluonmap.launches.comparison import Judged
from gluonmap.model.candidate import Config
from gluonmap.report.plain_text import plural

_WIDTH = 72


def render(ended: Ended, verdicts: Sequence[MapVerdict]) -> str:
    """Return the kernels that ran and what their maps say."""
    from tabulate import tabulate

    recorded = ended.recorded
    lines = [f"gluonmap: the program ended with {ended.how}; {_seen(ended)}"]
    mapped = [item for verdict in verdicts for item in verdict.programs]
    known = {id(item.launched) for item in mapped}
    rows = [_mapped(item) for item in mapped]
    rows += [(*_row(item, _config(item)), "") for item in recorded.launched if id(item) not in known]
    if rows:
        lines += ["", tabulate(rows, ["kernel", "target", "launches", "tuning", "configuration", "map"]), ""]
    lines += [f"{verdict.kernel}: {verdict.words}" for verdict in verdicts]
    return "\n".join(lines).rstrip("\n") + "\n"


def _seen(ended: Ended) -> str:
    recorded = ended.recorded
    if not recorded.pythons:
        return "no Python process of it could be watched (python -I, -E and -S leave PYTHONPATH out)"
    if not recorded.triton:
        return "it never imported Triton"
    launches = sum(item.launches for item in recorded.launched)
    trials = sum(item.trials for item in recorded.launched)
    kernels = len({(item.kernel, item.file) for item in recorded.launched})
    more = f", and {trials:,} to tune" if trials else ""
    counted = f"{plural(kernels, 'kernel')}, {launches:,} launch{'' if launches == 1 else 'es'}"
    return f"Triton {', '.join(recorded.triton)}: {counted}{more}"


def _mapped(item: Judged) -> tuple[str, ...]:
    config = _moves(item.moves) if item.moves else "the baseline" if item.launched.config is not None else "not seen"
    return *_row(item.launched, config), f"{item.standing}: {item.why}" if item.why else str(item.standing)


def _row(item: Launched, config: str) -> tuple[str, str, str, str, str]:
    return item.kernel, item.target, f"{item.launches:,}", f"{item.trials:,}" if item.trials else "", config


def _config(item: Launched) -> str:
    if item.config is None:
        return "not seen"
    options = {n: v for n, v in item.options.items() if n in ("num_warps", "num_stages") and n not in item.config}
    return _moves({**item.config, **options})


def _moves(config: Config) -> str:
    text = " ".join(f"{name}={value}" for name, value in config.items())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
