"""The recorder of a program's kernel launches, copied as `sitecustomize.py` into a folder on the program's PYTHONPATH.

The program can notice only that folder in PYTHONPATH, which its child processes need. The recorder removes itself from
`sys.path`, runs the `sitecustomize` that would have run without it, imports nothing until Triton is imported, and
swallows its own errors. It counts launches in a memory-mapped file, so the counts survive `os._exit`, a signal and
`exec`. It needs nothing but the standard library.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # not from typing: the recorder must not import modules before the program does
if TYPE_CHECKING:
    from typing import Any

CAPACITY = 4096
"""Number of programs that one process counts apart. The last place counts all further programs together."""

_HERE = os.path.dirname(os.path.abspath(__file__))
_PLAIN = (bool, int, float, str, type(None))


class Recorder:
    """The counts of one process."""

    def __init__(self, folder: str) -> None:
        import threading

        self.folder = folder
        self.programs: dict[str, dict[str, Any]] = {}
        self.handles: dict[Any, str] = {}
        self.local = threading.local()
        self.start()
        os.register_at_fork(after_in_child=self.start)

    def start(self) -> None:
        """Reset the counts. The first launch creates the files of this process."""
        import threading

        # Reentrant, because a signal handler may launch kernels.
        self.lock = threading.RLock()
        self.name = ""
        self.counts: Any = None
        self.places: dict[str, int] = {}

    # -- Triton's hooks --------------------------------------------------------------------------------------------

    def compiled(self, *, src: Any, metadata: Any, metadata_group: Any, **more: Any) -> None:
        """Remember the configuration and options of a program by its hash (`knobs.compilation.listener`)."""
        function = getattr(src, "fn", None)
        names = getattr(function, "arg_names", ())
        constants = {}
        for place, value in getattr(src, "constants", {}).items():
            if isinstance(place, tuple) and len(place) == 1 and isinstance(place[0], int):
                place = names[place[0]]
            if isinstance(place, str):
                constants[place] = plain(value)
        target = metadata["target"]
        known = {"config": constants, "options": {k: v for k, v in metadata.items() if type(v) in _PLAIN}}
        known["options"] |= _warps(metadata_group)
        code = getattr(getattr(function, "fn", None), "__code__", None)
        self.programs[metadata["hash"]] = {
            "kernel": getattr(function, "__name__", metadata.get("name", "")),
            "file": getattr(code, "co_filename", ""),
            "target": _target(getattr(target, "backend", ""), str(getattr(target, "arch", ""))),
            **known,
        }

    def loaded(self, module: Any, function: Any, name: str, metadata_group: Any, hash: str) -> None:
        """Remember which program a handle launches (`knobs.runtime.kernel_load_end_hook`)."""
        self.handles[function] = hash

    def launched(self, metadata: Any) -> None:
        """Count one launch (`knobs.runtime.launch_enter_hook`). Lazy metadata is not evaluated."""
        data = getattr(metadata, "data", metadata)
        program = self.handles.get(data.get("function")) or str(data.get("name"))
        with self.lock:
            self.counts_of(program, data)[2 * self.places[program] + bool(getattr(self.local, "trials", 0))] += 1

    def tuned(self, *, fn: Any, key: Any, best_config: Any, configs_timings: Any, cache_hit: bool, **more: Any) -> None:
        """Write down the choice of an autotuner (`knobs.autotuning.listener`, since Triton 3.7)."""
        config = {name: plain(value) for name, value in best_config.all_kwargs().items()}
        choice = {"kernel": fn.__name__, "key": [repr(part) for part in key], "config": config}
        self.write({"tuned": {**choice, "candidates": len(configs_timings), "cached": bool(cache_hit)}})

    # -- files -----------------------------------------------------------------------------------------------------

    def counts_of(self, program: str, data: Any) -> Any:
        """Return the counts, after giving the program a place in them."""
        if self.counts is None:
            import mmap

            with open(os.path.join(self.folder, f"{self.own()}.counts"), "xb+") as file:
                os.posix_fallocate(file.fileno(), 0, 16 * CAPACITY)  # a full disk must fail here, not at a store
                self.counts = memoryview(mmap.mmap(file.fileno(), 16 * CAPACITY)).cast("Q")
        if program not in self.places:
            place = min(len(self.places), CAPACITY - 1)
            unknown: dict[str, Any] = {
                "kernel": str(data.get("name")),
                "file": "",
                "target": "",
                "config": None,
                "options": {},
            }
            self.write({"place": place, **self.programs.get(program, unknown)})
            self.places[program] = place
        return self.counts

    def write(self, line: Any) -> None:
        """Append a line of JSON to the records of this process."""
        import json

        text = json.dumps(line, default=str) + "\n"
        with open(os.path.join(self.folder, f"{self.own()}.jsonl"), "ab") as file:
            file.write(text.encode())

    def own(self) -> str:
        """Return the name of this process's files. After `exec` the process gets new files."""
        if not self.name:
            import time

            self.name = f"{os.getpid()}-{time.time_ns()}"
        return self.name


def plain(value: Any) -> Any:
    """Return a value for JSON; an object is spelled as "py:…"."""
    value = value.value if type(value).__name__ == "constexpr" else value
    return value if type(value) in _PLAIN else f"py:{value!r}"


def _target(backend: str, arch: str) -> str:
    arch = arch.partition(":")[0]
    return f"sm_{arch}" if backend == "cuda" else arch


def _warps(metadata_group: Any) -> dict[str, int]:
    """Return the requested number of warps. The metadata's number includes the warps of worker partitions."""
    import re

    path = next((str(path) for name, path in dict(metadata_group).items() if name.endswith(".ttgir")), "")
    if not path:
        return {}
    with open(path, "rb") as file:
        found = re.search(rb'"ttg\.num-warps" = (\d+)', file.read(1 << 16))
    return {"num_warps": int(found[1])} if found else {}


def _quietly(function: Any) -> Any:
    """Return the function with all its exceptions swallowed."""

    def quiet(*args: Any, **kwargs: Any) -> None:
        try:  # noqa: SIM105  contextlib may not be imported yet
            function(*args, **kwargs)
        except Exception:  # a program must not fail for being watched
            pass

    return quiet


def _both(first: Any, second: Any) -> Any:
    def both(*args: Any, **kwargs: Any) -> Any:
        first(*args, **kwargs)
        return second(*args, **kwargs)

    return both if second is not None else first


class Hooks:
    """An import hook that connects the recorder to Triton."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.recorder: Any = None
        self.after = {"triton.knobs": self.knobs, "triton.runtime.autotuner": self.autotuner}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Find Triton's modules through the other finders, and connect the recorder after a module was executed."""
        if name not in self.after:
            return None
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if finder is not self and find is not None else None
            if spec is not None:
                self.watch(spec.loader, self.after.pop(name))
                if not self.after and self in sys.meta_path:
                    sys.meta_path.remove(self)
                return spec
        return None

    def watch(self, loader: Any, after: Any) -> None:
        """Call `after` with the module that the loader executes next."""
        execute: Any = getattr(loader, "exec_module", None)

        def exec_module(module: Any) -> None:
            del loader.exec_module
            execute(module)
            _quietly(after)(module)

        if execute is not None:
            try:  # noqa: SIM105
                loader.exec_module = exec_module
            except AttributeError:  # the loader has no instance attributes: nothing is counted
                pass

    def knobs(self, module: Any) -> None:
        """Connect the recorder to `triton.knobs`."""
        found = self.recorder = Recorder(self.folder)
        found.write({"triton": sys.modules["triton"].__dict__.get("__version__", "")})
        module.runtime.kernel_load_end_hook.add(_quietly(found.loaded))
        module.runtime.launch_enter_hook.add(_quietly(found.launched))
        module.compilation.listener = _both(_quietly(found.compiled), module.compilation.listener)
        if hasattr(module.autotuning, "listener"):
            module.autotuning.listener = _both(_quietly(found.tuned), module.autotuning.listener)

    def autotuner(self, module: Any) -> None:
        """Count launches of the autotuner's benchmark apart from the program's own."""
        import functools

        if self.recorder is None:
            return
        bench, local = module.Autotuner._bench, self.recorder.local

        @functools.wraps(bench)
        def _bench(*args: Any, **kwargs: Any) -> Any:
            local.trials = getattr(local, "trials", 0) + 1
            try:
                return bench(*args, **kwargs)
            finally:
                local.trials -= 1

        module.Autotuner._bench = _bench


def _run_the_next_sitecustomize() -> None:
    """Import the `sitecustomize` that this file shadows, if there is one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
    sys.path_importer_cache.pop(_HERE, None)
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # type: ignore[import-not-found] # noqa: F401
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
    finally:
        if own is not None:
            sys.modules.setdefault("sitecustomize", own)


def _begin() -> None:
    records = os.path.join(os.path.dirname(_HERE), "records")
    with open(os.path.join(records, "pythons"), "ab") as file:
        file.write(f"{os.getpid()}\n".encode())
    sys.meta_path.insert(0, Hooks(records))


if __name__ == "sitecustomize":
    _quietly(_begin)()
    _run_the_next_sitecustomize()
