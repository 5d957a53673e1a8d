"""Flags that commands about a kernel file share, and the settings of a run that they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gluonmap.cli import completion
from gluonmap.cli.option_values import bytes_of, pair, values_by_name, values_of

if TYPE_CHECKING:
    from gluonmap.probe.campaign import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

FLAGS: dict[str, Callable[..., Any]] = {
    "target": click.option(
        "--target",
        "-t",
        "target",
        multiple=True,
        metavar="NAME[,NAME]",
        shell_complete=completion.targets,
        help="Targets to map, each apart; by default this machine's device, else all that the kernel's API allows.",
    ),
    "kernel": click.option(
        "--kernel", default="", metavar="NAME", help="Function to map, where the file holds several."
    ),
    "sets": click.option(
        "--set", "sets", multiple=True, metavar="K=V", help="Baseline value of a knob or constexpr parameter."
    ),
    "domains": click.option(
        "--domain",
        "domains",
        multiple=True,
        metavar="K=V1,V2,…",
        help="Values to try; makes any constexpr, option or host name a knob.",
    ),
    "config": click.option(
        "--config",
        "config",
        default="",
        metavar="FILE[#ENTRY]",
        help="Baseline from an aiter or vLLM style JSON configuration file.",
    ),
    "args": click.option(
        "--arg",
        "args",
        multiple=True,
        metavar="K=V",
        help="A run-time argument: a number or a type such as '*bf16', i32:16.",
    ),
    "derive": click.option(
        "--derive",
        multiple=True,
        metavar="K=EXPR",
        help="A parameter that host code computes: SPLIT='cdiv(K, NUM_KSPLIT)'.",
    ),
    "grid": click.option(
        "--grid", default="", metavar="EXPR", help="Launch grid: '(cdiv(M, BLOCK_M), cdiv(N, BLOCK_N))'."
    ),
    "regime": click.option(
        "--regime", default="", metavar="NAME", help="Which shape of the probe file to compile for."
    ),
    "probe_file": click.option(
        "--probe-file",
        type=click.Path(path_type=Path),
        help="Probe file; by default the one that bears the kernel's name.",
    ),
    "stubs": click.option(
        "--stub",
        "stubs",
        multiple=True,
        metavar="PACKAGE",
        help="Leave out the __init__ of a package that cannot run here.",
    ),
    "jobs": click.option(
        "--jobs", "-j", type=click.IntRange(1, 512), help="Candidates at once; by default one per core."
    ),
    "deadline": click.option(
        "--deadline",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="After it a candidate is HUNG; by default 120 or 30 times the baseline.",
    ),
    "memory": click.option("--memory", default="", metavar="SIZE", help="Memory of one candidate, such as 8G."),
    "restrict": click.option(
        "--restrict",
        multiple=True,
        metavar="EXPR",
        help="What you demand of a configuration: 'BLOCK_M*BLOCK_N <= 65536'. Nothing else is asked.",
    ),
    "resume": click.option(
        "--resume/--no-resume", default=True, show_default=True, help="Whether answers of earlier runs are used."
    ),
    "retry": click.option("--retry", is_flag=True, help="Ask again what had no answer (unknown) in an earlier run."),
    "python": click.option(
        "--python", "python", default="", metavar="VENV", help="Probe with the Triton of another environment."
    ),
    "out": click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=None,
        metavar="DIR",
        help="Folder for probes/ and reports/; by default here.",
    ),
    "sanitize": click.option(
        "--sanitize",
        is_flag=True,
        help="With a run on the CPU: report wrong accesses, waits and barriers, as the outcome UNSAFE.",
    ),
    "thorough": click.option(
        "--thorough", is_flag=True, help="With a run on the CPU: more sizes, seeds and orders of waves."
    ),
    "quiet": click.option("--quiet", "-q", is_flag=True, help="No progress on stderr."),
}
"""By the name of the parameter that they become."""

DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("sets", "domains", "args", "derive", "stubs", "restrict"), ()),
    **dict.fromkeys(("config", "memory"), ""),
    **dict.fromkeys(("budget", "validate", "seconds"), None),
    "retry": False,
    "resume": True,
    "depth": "singles",
    "confidence": 0.95,
    "seed": 0,
    "stage": "compile",
    "sanitize": False,
    "thorough": False,
}
"""Of flags that not every command has."""


def flags(*names: str, **other: str) -> Callable[[Command], Command]:
    """A decorator that gives a command these flags, in this order; `other`: with a help of its own."""

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = FLAGS[name](command)
            if name in other:
                command.__click_params__[-1].help = other[name]  # type: ignore[attr-defined]
        return command

    return decorate


def settings_of(kernel_file: Path, options: Mapping[str, Any]) -> Settings:
    """What a run needs: the values of these flags and of probe's own; a flag that a command lacks has its default."""
    given = {**DEFAULTS, **options}
    from gluonmap.model.candidate import Stage, Watch
    from gluonmap.probe import campaign
    from gluonmap.probe.joint_search import Effort
    from gluonmap.spec.description_builder import Overrides

    jobs = given["jobs"] or campaign.default_jobs()
    overrides = Overrides(
        kernel=given["kernel"],
        sets=values_by_name(given["sets"], "--set"),
        domains={k: values_of(v) for k, v in (pair(t, "--domain") for t in given["domains"])},
        derive=dict(pair(t, "--derive") for t in given["derive"]),
        args=values_by_name(given["args"], "--arg"),
        grid=given["grid"],
        regime=given["regime"],
    )
    return campaign.Settings(
        kernel_file=kernel_file,
        root=given["out"] or Path.cwd(),
        overrides=overrides,
        config_file=given["config"],
        probe_file=given["probe_file"],
        stubs=tuple(given["stubs"]),
        jobs=jobs,
        deadline_s=given["deadline"],
        retry=given["retry"],
        afresh=not given["resume"],
        effort=Effort(
            depth=given["depth"],
            budget=given["budget"],
            validate=given["validate"],
            seconds=given["seconds"],
            confidence=given["confidence"],
            restrict=tuple(given["restrict"]),
            seed=given["seed"],
            deadline_s=given["deadline"],
        ),
        memory_bytes=bytes_of(given["memory"]) if given["memory"] else campaign.default_memory_bytes(jobs),
        stage=Stage(given["stage"].upper()),
        watch=Watch(given["sanitize"], given["thorough"]),
    )
