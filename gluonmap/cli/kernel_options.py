"""Options that commands on a kernel file share, and the settings of a run made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gluonmap.cli import completion
from gluonmap.cli.option_values import bytes_of, pair, values_by_name, values_of

if TYPE_CHECKING:
    from gluonmap.probe.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

FLAGS: dict[str, Callable[..., Any]] = {
    "target": click.option(
        "--target",
        "-t",
        "target",
        multiple=True,
        metavar="NAME[,NAME]",
        shell_complete=completion.targets,
        help="Targets, one map each; by default this machine's device, else all that the kernel's API allows.",
    ),
    "kernel": click.option("--kernel", default="", metavar="NAME", help="Kernel to map, if the file has several."),
    "sets": click.option(
        "--set", "sets", multiple=True, metavar="K=V", help="Baseline value of a knob or constexpr parameter."
    ),
    "domains": click.option(
        "--domain",
        "domains",
        multiple=True,
        metavar="K=V1,V2,…",
        help="Values to try. Any constexpr parameter, compiler option or host name can be made a knob.",
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
        help="Run-time argument: a number, or a type such as '*bf16' or i32:16.",
    ),
    "derive": click.option(
        "--derive",
        multiple=True,
        metavar="K=EXPR",
        help="Parameter that host code computes: SPLIT='cdiv(K, NUM_KSPLIT)'.",
    ),
    "grid": click.option(
        "--grid", default="", metavar="EXPR", help="Launch grid: '(cdiv(M, BLOCK_M), cdiv(N, BLOCK_N))'."
    ),
    "regime": click.option("--regime", default="", metavar="NAME", help="Shape of the probe file to compile for."),
    "probe_file": click.option(
        "--probe-file",
        type=click.Path(path_type=Path),
        help="Probe file; by default the one with the kernel's name.",
    ),
    "stubs": click.option(
        "--stub",
        "stubs",
        multiple=True,
        metavar="PACKAGE",
        help="Skip the __init__ of a package that cannot run on this machine.",
    ),
    "jobs": click.option(
        "--jobs", "-j", type=click.IntRange(1, 512), help="Candidates that run in parallel; by default one per core."
    ),
    "deadline": click.option(
        "--deadline",
        type=click.FloatRange(min=0.1),
        metavar="SECONDS",
        help="Time limit of one candidate, which is HUNG after it; by default 120, or 30 times the baseline's time.",
    ),
    "memory": click.option("--memory", default="", metavar="SIZE", help="Memory limit of one candidate, such as 8G."),
    "restrict": click.option(
        "--restrict",
        multiple=True,
        metavar="EXPR",
        help="Expression that every configuration must meet: 'BLOCK_M*BLOCK_N <= 65536'. No other one is tried.",
    ),
    "resume": click.option(
        "--resume/--no-resume",
        default=True,
        show_default=True,
        help="Use answers of earlier runs, or ask all questions again.",
    ),
    "retry": click.option(
        "--retry", is_flag=True, help="Ask again the questions without an answer (unknown) in earlier runs."
    ),
    "python": click.option(
        "--python", "python", default="", metavar="VENV", help="Use the Triton of another environment."
    ),
    "out": click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=None,
        metavar="DIR",
        help="Folder for probes/ and reports/; by default the current one.",
    ),
    "sanitize": click.option(
        "--sanitize",
        is_flag=True,
        help="Executing on the CPU: report wrong accesses, waits and barriers as the outcome UNSAFE.",
    ),
    "thorough": click.option(
        "--thorough", is_flag=True, help="Executing on the CPU: use more sizes, seeds and orders of waves."
    ),
    "quiet": click.option("--quiet", "-q", is_flag=True, help="Print no progress on stderr."),
}
"""Options by the name of their parameter."""

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
"""Values of options that not every command has."""


def flags(*names: str, **other: str) -> Callable[[Command], Command]:
    """Return a decorator that adds these options to a command, in this order.

    `other`: option -> a help text for this command alone.
    """

    def decorate(command: Command) -> Command:
        for name in reversed(names):
            command = FLAGS[name](command)
            if name in other:
                command.__click_params__[-1].help = other[name]  # type: ignore[attr-defined]
        return command

    return decorate


def settings_of(kernel_file: Path, options: Mapping[str, Any]) -> Settings:
    """Return the settings of a run; options that the command lacks have the values of `DEFAULTS`."""
    given = {**DEFAULTS, **options}
    from gluonmap.model.candidate import Stage, Watch
    from gluonmap.probe.settings import Effort, Settings, default_jobs, default_memory_bytes
    from gluonmap.spec.description_builder import Overrides

    jobs = given["jobs"] or default_jobs()
    overrides = Overrides(
        kernel=given["kernel"],
        sets=values_by_name(given["sets"], "--set"),
        domains={k: values_of(v) for k, v in (pair(t, "--domain") for t in given["domains"])},
        derive=dict(pair(t, "--derive") for t in given["derive"]),
        args=values_by_name(given["args"], "--arg"),
        grid=given["grid"],
        regime=given["regime"],
    )
    return Settings(
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
        memory_bytes=bytes_of(given["memory"]) if given["memory"] else default_memory_bytes(jobs),
        stage=Stage(given["stage"].upper()),
        watch=Watch(given["sanitize"], given["thorough"]),
    )
