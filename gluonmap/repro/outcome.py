"""Two compiles, each in a separate process, and their outcomes. Copied unchanged into every script."""

REPRO_FAILS, REPRO_PASSES, REPRO_UNCLEAR = 1, 0, 125
REPRO_REJECTED, REPRO_OVER_BUDGET = 10, 12


def repro_compile(call, over_budget):
    """Compile in this process, print the outcome as the last line and exit. A crash may end the process before."""
    import resource
    import traceback

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        program = call()
    except BaseException as error:
        traceback.print_exception(error)
        inner = error
        while inner.__cause__ is not None:
            inner = inner.__cause__
        kind = type(inner if type(error).__name__ == "CompilationError" else error).__name__
        text = str(getattr(inner, "error_message", None) or ("" if hasattr(inner, "node") else inner))
        repro_leave(REPRO_REJECTED, f"REJECTED {kind}: {next((t.strip() for t in text.splitlines() if t.strip()), '')}")
    if over := over_budget(program):
        repro_leave(REPRO_OVER_BUDGET, f"NO_RESOURCES budget: {over}")
    repro_leave(0, "PASS")


def repro_leave(status, line):
    import os
    import sys

    print(line, flush=True)
    sys.stderr.flush()
    os._exit(status)


def repro_lines(file):
    """Return the lines of a file that are not blank; [""] if there are none."""
    file.seek(0)
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    return [line for line in lines if line] or [""]


def repro_run(name, deadline_s):
    """Compile one of the calls in a child process; return outcome, kind and the most useful line of its messages."""
    import os
    import signal
    import subprocess
    import sys
    import tempfile

    isolated = ["-I"] if sys.flags.isolated else []
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(
            [sys.executable, *isolated, os.path.abspath(__file__), name],
            env={**os.environ, "TRITON_CACHE_DIR": folder, "TRITON_ALWAYS_COMPILE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            status = process.wait(timeout=deadline_s)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return "HUNG", "deadline", f"no end within {deadline_s:g} s"
        said, complaint = (repro_lines(file) for file in (out, err))
    errors = [line for word in ("LLVM ERROR", "Assertion", "error:") for line in complaint if word in line]
    if status < 0:
        return "CRASHED", signal.Signals(-status).name, errors[0] if errors else ""
    if status == 0 and said[-1] == "PASS":
        return "PASS", "", ""
    if status in (REPRO_REJECTED, REPRO_OVER_BUDGET):
        first, _, text = said[-1].partition(":")
        outcome, _, kind = first.partition(" ")
        return outcome, kind, next((line for line in complaint if ": error: " in line), text.strip())
    return "unknown", f"exit status {status}", (errors or complaint)[-1]


def repro_main(calls, recorded, deadline_s, over_budget=lambda program: ""):
    """Compile the call that the command line names; without one, compile each in a separate process and compare."""
    import platform
    import sys

    import triton

    if len(sys.argv) > 1:
        repro_compile(calls[sys.argv[1]], over_budget)
    print(f"Triton {triton.__version__}, Python {platform.python_version()}, {platform.platform()}", flush=True)
    found = {}
    for name in calls:
        found[name] = repro_run(name, deadline_s)
        print(f"{name}: {' '.join(part for part in found[name] if part)}"[:500], flush=True)
    if any(outcome != "PASS" for name, (outcome, *_) in found.items() if name != "failing"):
        print("Unclear: the call that should pass fails.")
        return REPRO_UNCLEAR
    if found["failing"][:2] == recorded:
        print("It fails as recorded.")
        return REPRO_FAILS
    if found["failing"][0] == "PASS":
        print("It passes now.")
        return REPRO_PASSES
    print(f"It fails in another way than recorded ({' '.join(recorded)}).")
    return REPRO_UNCLEAR
