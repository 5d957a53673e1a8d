"""A user's rule applied to configurations: Python expressions, an `early_config_prune`, a test of one configuration."""

from __future__ import annotations

import builtins
import inspect
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from gluonmap.model import exitcode, targets
from gluonmap.model.candidate import Config
from gluonmap.model.verdict import Reason
from gluonmap.worker import arguments, compile, load
from gluonmap.worker.protocol import Choice, Evidence, KernelFile

PHASE = "rule"


def chosen(choice: Choice, kernel: load.Kernel, target: targets.Target) -> Evidence:
    """Return evidence with the configurations that the rule keeps, or with the exception it raised and its line."""
    try:
        if choice.texts:
            kept, strange = _by_texts(choice.texts, choice.configs), 0
        else:
            kept, strange = _by_function(_function(choice, kernel), choice, kernel, target)
    except Exception as error:
        traceback.print_exc()
        file, line = _place(error, choice.file or str(getattr(kernel.module, "__file__", "")))
        reason = Reason(type(error).__name__, str(error), PHASE)
        return Evidence(exitcode.REJECTED_FRONT_END, reason=reason, file=file, line=line)
    return Evidence(exitcode.PASS, chosen=tuple(kept), strange=strange)


def _by_texts(texts: Iterable[str], configs: Iterable[Config]) -> list[int]:
    """Return the positions of the configurations for which all expressions are true.

    The expressions are read as Kernel Tuner reads them: parameters are names.
    """
    made = [builtins.compile(text.strip(), "<restriction>", "eval") for text in texts]
    # eval runs the user's own text, in a child process.
    return [place for place, config in enumerate(configs) if all(eval(code, {}, dict(config)) for code in made)]


def _function(choice: Choice, kernel: load.Kernel) -> Callable[..., Any] | None:
    """Return the rule's function; None if the kernel's own autotuner has none, so that everything is kept.

    Raises:
        LookupError: the file has no such function.
    """
    if not choice.file:
        return kernel.prune  # type: ignore[no-any-return]
    own = str(getattr(kernel.module, "__file__", ""))
    same = bool(own) and Path(own).resolve() == Path(choice.file).resolve()
    module = kernel.module if same else load.load_module(KernelFile(choice.file, ""))[0]
    function = getattr(module, choice.function, None)
    if not callable(function):
        raise LookupError(f"{Path(choice.file).name} has no function {choice.function!r}")
    return function  # type: ignore[no-any-return]


def _by_function(
    function: Callable[..., Any] | None, choice: Choice, kernel: load.Kernel, target: targets.Target
) -> tuple[list[int], int]:
    """Return the positions of the kept configurations, and the number of returned configurations not in the input."""
    if function is None:
        return list(range(len(choice.configs))), 0
    configs = [_config(config, kernel) for config in choice.configs]
    if _takes_one(function):
        return [place for place, config in enumerate(configs) if function(config)], 0
    given = {name: arguments.make(value, target.backend) for name, value in choice.args.items()}
    fixed = {name: compile.value_of(name, value, kernel) for name, value in choice.fixed.items()}
    equal = {_text(config): place for place, config in reversed(list(enumerate(configs)))}
    # Triton passes the launch's arguments: early_config_prune(configs, named_args, **kwargs) (autotuner.py, 3.9.0).
    returned = function(list(configs), given, grid=(1,), warmup=False, **fixed)
    if not isinstance(returned, Iterable):
        raise TypeError(f"it returned {returned!r}, and a list of configurations was expected")
    # A returned configuration would be launched, so a changed one is not the one in the input: compare contents.
    found = [equal.get(_text(config)) for config in returned]
    kept = sorted({place for place in found if place is not None})
    return kept, sum(place is None for place in found)


def _takes_one(function: Callable[..., Any]) -> bool:
    """Return whether the function tests one configuration, as for `filter`: it has exactly one parameter."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    return len(parameters) == 1 and parameters[0].kind not in (
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.VAR_KEYWORD,
    )


def _config(config: Config, kernel: load.Kernel) -> Any:
    import triton  # weight of Triton

    values = {name: compile.value_of(name, value, kernel) for name, value in config.items()}
    options = {name: values.pop(name) for name in targets.LAUNCH_OPTIONS if name in values}
    return triton.Config(values, **options)


def _text(config: Any) -> str:
    return repr(sorted(config.all_kwargs().items())) if hasattr(config, "all_kwargs") else ""


def _place(error: Exception, file: str) -> tuple[str, int]:
    """Return the file and the last line of the rule's own file in the exception's traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if file and frame.filename == file]
    return (frames[-1].filename, frames[-1].lineno or 0) if frames else ("", 0)
