"""Stand-alone scripts of failures: what is copied into them, and what they show where there is Triton alone."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import venv
from pathlib import Path

import msgspec
import pytest
from maps import PAIR_RULE, pair_map
from msgspec.structs import replace
from project import Project

from gluonmap.model import codec
from gluonmap.model.candidate import Candidate, Config, Stage, Value
from gluonmap.model.errors import OracleFault, UsageError
from gluonmap.model.outcomes import Outcome
from gluonmap.model.relations import Compare, KnobTerm, Number, Op, Relation
from gluonmap.model.verdict import Reason, Verdict
from gluonmap.query.explain import explain
from gluonmap.query.feasibility import Judge, complete
from gluonmap.repro import pair, script
from gluonmap.repro.inline import Inlined, inline
from gluonmap.runner import environment

# ---- what is copied -------------------------------------------------------------------------------------------------


def copied(folder: Path, text: str = "", file: str = "k.py", **files: str) -> Inlined:
    """`kernel` out of a file of this text, beside other files, by their paths."""
    for name, written in {file: text, **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(written))
    return inline(folder / file, "kernel", path=[str(folder)])


def text_of(found: Inlined) -> str:
    return "\n".join(section.text for section in found.sections)


def values(found: Inlined) -> dict[str, object]:
    """What the text binds when it is executed."""
    names: dict[str, object] = {}
    exec("\n".join([*found.imports, text_of(found)]), names)
    return names


def refused(folder: Path, text: str, **files: str) -> str:
    with pytest.raises(UsageError) as error:
        copied(folder, text, **files)
    return str(error.value)


def test_only_what_the_kernel_reaches_is_copied_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        """
        import math
        import os

        SIZE = 4  # lanes
        OTHER = os.getcwd()

        def unused():
            return OTHER

        def kernel(x):
            return helper(x) * math.pi

        def helper(x):
            return x + SIZE
        """,
    )
    assert (found.kernel, found.plain, found.imports) == ("kernel", True, ("import math",))
    assert found.sections[0].text == (
        "SIZE = 4  # lanes\n\n\ndef kernel(x):\n    return helper(x) * math.pi\n\n\ndef helper(x):\n    return x + SIZE"
    )


def test_a_local_name_is_no_name_of_the_module(tmp_path: Path) -> None:
    text = "import torch\n\ndef kernel(torch):\n    total = torch\n    return total\n\ntotal = torch.sum\n"
    assert text_of(copied(tmp_path, text)) == "def kernel(torch):\n    total = torch\n    return total"


def test_a_name_bound_several_times_comes_with_all_that_binds_or_changes_it(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        """
        TABLE = {}
        TABLE["a"] = 1
        TABLE.update(b=2)
        if TABLE:
            SIZE = 1
        else:
            SIZE = 2
        try:
            SIZE += 1
        except TypeError:
            pass

        def kernel():
            return TABLE, SIZE
        """,
    )
    assert values(found)["kernel"]() == ({"a": 1, "b": 2}, 2)  # type: ignore[operator]


def test_what_only_a_script_or_a_type_checker_executes_is_not_copied(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from torch import Tensor as SIZE
        SIZE = 3

        def kernel():
            return SIZE

        if __name__ == "__main__":
            SIZE = input()
        """,
    )
    assert text_of(found) == "SIZE = 3\n\n\ndef kernel():\n    return SIZE"


def test_helpers_of_other_files_precede_the_kernel_under_the_names_that_it_uses(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        """
        from pkg.tools import twice as double, SIZE
        from . import deep
        from ..more import *
        import pkg.tools as tools

        def kernel(x):
            return double(x) + SIZE + deep.inner.three() + starred() + tools.SIZE
        """,
        "pkg/ops/k.py",
        **{
            "pkg/__init__.py": "import torch\nraise ImportError",
            "pkg/ops/__init__.py": "",
            "pkg/tools.py": "import torch\nSIZE = 100\n\ndef twice(x):\n    return 2 * x\n",
            "pkg/ops/deep/__init__.py": "from . import inner\n",
            "pkg/ops/deep/inner.py": "def three():\n    return 3\n",
            "pkg/more.py": "def starred():\n    return 4000\n",
        },
    )
    assert values(found)["kernel"](5) == 10 + 100 + 3 + 4000 + 100  # type: ignore[operator]
    assert [section.file for section in found.sections][-1] == "pkg/ops/k.py"
    assert found.imports == ("import types",)


def test_a_name_that_a_package_passes_on_is_followed_to_its_file(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        "from pkg import outer\n\ndef kernel():\n    return outer()\n",
        **{"pkg/__init__.py": "from .impl import inner as outer\n", "pkg/impl.py": "def inner():\n    return 7\n"},
    )
    assert values(found)["kernel"]() == 7  # type: ignore[operator]


def test_an_autotuner_and_a_launcher_are_left_out_and_heuristics_stay(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        """
        import torch, triton
        from triton.experimental import gluon
        from lib import launcher, name_of

        @launcher(torch.float16)
        @triton.autotune(configs=[torch.int8], key=[])
        @triton.heuristics(
            {"EVEN": lambda args: args["N"] % SIZE == 0},  # whole tiles
        )
        @gluon.jit(repr=name_of, debug=True)
        def kernel(x, N):
            pass

        SIZE = 16
        """,
    )
    assert text_of(found) == (
        '@triton.heuristics(\n    {"EVEN": lambda args: args["N"] % SIZE == 0},  # whole tiles\n)\n'
        "@gluon.jit(debug=True)\ndef kernel(x, N):\n    pass\n\n\nSIZE = 16"
    )


def test_a_kernel_that_an_expression_made_is_not_plain(tmp_path: Path) -> None:
    found = copied(tmp_path, "import triton\n\ndef bare():\n    pass\n\nkernel = triton.heuristics({})(bare)\n")
    assert (found.plain, text_of(found)) == (False, "def bare():\n    pass\n\n\nkernel = triton.heuristics({})(bare)")


@pytest.mark.parametrize(
    ("text", "lib", "said"),
    [
        ("import torch\ndef kernel(): return torch.int8", "", "reaches torch.int8 (k.py:1)"),
        ("import numpy as np\ndef kernel(): return np.pi", "", "reaches numpy.pi (k.py:1)"),
        ("from nowhere import f\ndef kernel(): return f()", "", "no Python file of nowhere is found"),
        ("from lib import g\ndef kernel(): return g()", "f = 1", "k.py:1 imports g, which lib.py does not define"),
        ("import lib\ndef kernel(): return vars(lib)", "", "uses the module lib (k.py:1) other than by attributes"),
        ("def kernel(): return f()\ndef f():\n  import lib", "", "k.py:3 imports lib within a block"),
        ("from lib import f\nS = 1\ndef kernel(): return f(), S", "S = 2\ndef f(): return S", "S (k.py:2) is the name"),
        ("def kernel(): return __file__", "", "reads __file__"),
        ("def other(): pass", "", "does not define kernel"),
    ],
)
def test_what_cannot_be_copied_is_refused_by_name(tmp_path: Path, text: str, lib: str, said: str) -> None:
    assert said in refused(tmp_path, text, **{"lib.py": lib})


def test_places_that_read_the_environment_are_told(tmp_path: Path) -> None:
    found = copied(tmp_path, "import os\nSIZE = os.environ.get('SIZE', '4')\n\ndef kernel():\n    return SIZE\n")
    assert found.surroundings == ("k.py:2",)


# ---- the text of a script -------------------------------------------------------------------------------------------

KERNEL = "import triton\nfrom triton import jit\n\n@jit\ndef kernel(x, n, A, B):\n    pass\n"


def candidate(config: Config, **args: Value) -> Candidate:
    return Candidate("gfx950", args or {"x": "*fp16", "n": "i32:16"}, config)


def rendered(
    folder: Path, failing: Candidate, passing: Candidate | None = None, text: str = KERNEL, **more: object
) -> str:
    (folder / "k.py").write_text(text)
    reason = more.pop("reason", Reason("SIGABRT", "LLVM ERROR: it is over", "front end"))
    outcome = Outcome(str(more.pop("outcome", "CRASHED")))
    stage = Stage(str(more.pop("stage", "COMPILE")))
    assert isinstance(reason, Reason)
    verdict = Verdict(outcome, stage, -6, reason=reason)
    failure = script.RecordedFailure(
        folder / "k.py", "kernels/k.py", "kernel", "3.9.0", failing, verdict, "kernels/k.py:5", passing, 120.0
    )
    return script.render(replace(failure, **more))


def test_a_difference_of_the_calls_is_a_parameter_and_the_rest_is_shared(tmp_path: Path) -> None:
    both = {"A": 1, "B": "py:triton.language.float16"}
    args: dict[str, Value] = {"x": "*bf16:8", "n": "i64:16", "f": "fp32", "b": "i1", "k": 7}
    text = rendered(
        tmp_path,
        candidate({**both, "num_warps": 8}, **args, d="tensordesc<fp16[64, 32]>"),
        candidate({**both, "num_warps": 4}, **args, d="tensordesc<fp16[32, 32]>"),
    )
    assert (
        "def call(d, num_warps):\n"
        "    return kernel.warmup(\n"
        '        x=ReproTensor("bfloat16", address=8),\n'
        "        n=1099511627776,\n"
        "        f=1.5,\n"
        "        b=True,\n"
        "        k=7,\n"
        "        d=d,\n"
        "        A=1,\n"
        "        B=triton.language.float16,\n"
        "        num_warps=num_warps,\n"
        "        grid=(1,),\n"
        "    )\n"
    ) in text
    assert 'repro_descriptor(ReproTensor("float16", shape=(4096, 4096)), [64, 32], "hip"), num_warps=8)' in text


def test_a_script_says_what_fails_where_and_with_which_versions(tmp_path: Path) -> None:
    text = rendered(tmp_path, candidate({"A": 64, "B": 2}), candidate({"A": 32, "B": 2}))
    head = text.partition('\n"""')[0]
    assert head.startswith('"""Compiling kernel for gfx950 dies of SIGABRT.\n\n    LLVM ERROR: it is over\n')
    assert "    at kernels/k.py:5\n\n  fails:  A=64\n  passes: A=32\n  All else is the same.\n" in head
    assert f"Recorded with Triton 3.9.0, Python {sys.version.split()[0]}, " in head


def test_text_of_a_compiler_is_no_code(tmp_path: Path) -> None:
    evil = Reason("SIGABRT", '"""; import os; os.abort() \\" \x1b[2J\u202e', "front end")
    text = rendered(tmp_path, candidate({"A": 1}), reason=evil)
    compile(text, "script", "exec")
    assert '\\"\\"\\"; import os' in text
    assert "\x1b" not in text and "\u202e" not in text


def test_names_of_the_script_give_way_to_those_of_the_kernels_module(tmp_path: Path) -> None:
    text = KERNEL.replace("pass", "return call(failing)") + "\n\nfailing = 3\n\ndef call(x):\n    return x\n"
    found = rendered(tmp_path, candidate({"A": 64}), candidate({"A": 32}), text=text)
    assert "def call_(A):\n" in found
    assert "def failing_():\n    return call_(A=64)\n\n\ndef passing():\n    return call_(A=32)\n" in found


def test_without_a_passing_configuration_the_script_has_the_failing_one(tmp_path: Path) -> None:
    text = rendered(tmp_path, candidate({"A": 64}))
    assert "No configuration near it is known that passes." in text
    assert '{"failing": failing},' in text


def test_variables_that_change_what_is_compiled_are_set(tmp_path: Path) -> None:
    text = rendered(tmp_path, candidate({"A": 64}), environment={"AMDGCN_USE_BUFFER_OPS": "0"})
    call = 'repro_pretend("hip", "gfx950", 64, {"AMDGCN_USE_BUFFER_OPS": "0"})'
    assert text.index(call) < text.index("\nfrom triton import jit\n")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"outcome": "WRONG"}, "WRONG on a device is nothing that a compile shows"),
        ({"stage": "LAUNCH"}, "CRASHED on a device is nothing that a compile shows"),
        ({"outcome": "NO_RESOURCES", "reason": Reason("host memory", "")}, "ran out of the memory"),
        ({"failing": candidate({"grid": 1})}, "argument grid bears a name"),
        ({"failing": candidate({"A": "py:<function f at 0x1>"})}, "'<function f at 0x1>' cannot be written down"),
        ({"text": KERNEL.replace("pass", "return repro_run") + "\nrepro_run = 1\n"}, "repro_run is a name that the"),
    ],
)
def test_what_a_script_cannot_show_is_refused(tmp_path: Path, more: dict[str, object], said: str) -> None:
    failing = more.pop("failing", candidate({"A": 64}))
    assert isinstance(failing, Candidate)
    with pytest.raises(UsageError, match="no script: ") as error:
        rendered(tmp_path, failing, **more)  # type: ignore[arg-type]
    assert said in str(error.value)


# ---- which two configurations ---------------------------------------------------------------------------------------


class Rule:
    """Compiles by A * B <= 64, and counts."""

    def __init__(self, most: int = 64) -> None:
        self.most, self.asked = most, list[Config]()

    def __call__(self, config: Config) -> Verdict:
        self.asked.append(config)
        if int(config["A"] or 0) * int(config["B"] or 0) <= self.most:
            return Verdict(Outcome.PASS, Stage.COMPILE, 0)
        return Verdict(Outcome.REJECTED, Stage.COMPILE, 10, reason=Reason("CompileTimeAssertionFailure", "A * B"))


def paired(rule: Rule, moves: Config, *, joint: bool = True) -> pair.Pair:
    judged = Judge(pair_map(PAIR_RULE, "3.9.0", joint=joint))
    explanation = explain(
        judged, complete(judged.space, moves), lambda config: judged.judgement_of_answer(config, Rule()(config))
    )
    return pair.find(judged, explanation, rule)


def test_moves_that_the_failure_does_not_need_are_set_back() -> None:
    rule = Rule()
    found = paired(rule, {"A": 16, "B": 64, "C": 2})
    assert (found.failing, found.passing) == ({"A": 16, "B": 16, "C": 1}, {"A": 4, "B": 16, "C": 1})
    assert found.verdict.outcome is Outcome.REJECTED
    assert len(rule.asked) == len({tuple(config.values()) for config in rule.asked})  # each is compiled once


def test_a_map_of_single_values_has_its_neighbours_too() -> None:
    assert paired(Rule(), {"A": 16}, joint=False).passing == {"A": 4, "B": 16, "C": 1}


def test_where_nothing_passes_today_there_is_no_passing_one() -> None:
    assert paired(Rule(most=0), {"A": 16}).passing is None


def test_what_passes_today_makes_no_script() -> None:
    with pytest.raises(OracleFault, match="compiled now it passes"):
        paired(Rule(most=10**6), {"A": 16, "B": 64})


# ---- scripts that are run -------------------------------------------------------------------------------------------

KERNELS = {
    "kernels/pair.py": """
import functools
import types_of_mine
from scaling import scale as scaled
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
import torch

def launcher(function):
    return functools.wraps(function)

@triton.autotune(configs=[triton.Config({"A": 1})], key=["n"] if torch else [])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["A"] == 0})
@gluon.jit
def pair(x, n, A: gl.constexpr, B: gl.constexpr, C: gl.constexpr, EVEN: gl.constexpr):
    types_of_mine.check(A, B, EVEN)
    layout: gl.constexpr = types_of_mine.layout(gl.num_warps())
    i = gl.arange(0, A * B * 4, layout=layout)
    gl.store(x + i, scaled(gl.load(x + i)))
""",
    "kernels/scaling.py": """
from triton.experimental import gluon

@gluon.jit
def scale(x):
    return x * 2
""",
    "kernels/types_of_mine.py": """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

MOST = gl.constexpr(64)

@gluon.constexpr_function
def layout(warps):
    return gl.BlockedLayout([1], [64], [warps], [0])

@gluon.jit
def check(A: gl.constexpr, B: gl.constexpr, EVEN: gl.constexpr):
    gl.static_assert(A * B <= MOST and EVEN)
""",
}


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new virtual environment that holds Triton and nothing else."""
    folder = tmp_path_factory.mktemp("fresh")
    venv.EnvBuilder(symlinks=True).create(folder)
    triton = environment.triton_folder()
    (packages,) = folder.glob("lib/python*/site-packages")
    for found in (triton, *triton.parent.glob("*triton*.dist-info")):
        (packages / found.name).symlink_to(found)
    python = folder / "bin" / "python"
    for name in ("torch", "numpy", "gluonmap", "msgspec", "click"):
        done = subprocess.run([python, "-I", "-c", f"import {name}"], capture_output=True, text=True, check=False)
        assert "ModuleNotFoundError" in done.stderr
    return python


def ran(python: Path, file: Path, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [python, "-I", file, *arguments], capture_output=True, text=True, check=False, cwd=file.parent, timeout=120
    )
    return done.returncode, done.stdout, done.stderr


def stored(project: Project, relation: Relation = PAIR_RULE, *, joint: bool = True) -> str:
    """A map of the kernel above that claims the relation."""
    for name, text in KERNELS.items():
        project.write(name, text)
    triton = environment.triton_version(environment.triton_folder())
    space = pair_map(relation, triton, joint=joint)
    space = replace(
        space,
        specialisation={**space.specialisation, "n": "i32:16"},
        recipe=replace(space.recipe, args={"x": "*fp16", "n": "i32:16"}),
    )
    codec.write(project.root / "pair.json", codec.dumps(space))
    return "pair.json"


@pytest.mark.long
def test_a_script_fails_and_passes_with_triton_alone(project: Project, fresh: Path) -> None:
    run = project.run("explain", stored(project), "A=16", "B=64", "C=2", "--repro", "out/assert.py", "--json")
    assert run.code == 1, run.stderr
    assert run.stderr == ("gluonmap: out/assert.py shows it with Triton alone: A=16 fails, the baseline passes.\n")
    document = json.loads(run.stdout)["repro"]
    assert (document["file"], document["failing"]["C"], document["passing"]) == (
        "out/assert.py",
        1,
        {"A": 4, "B": 16, "C": 1},
    )

    file = project.home / "moved.py"  # far from the kernel's files
    (project.root / "out/assert.py").rename(file)
    code, said, _ = ran(fresh, file)
    assert code == 1
    assert said.splitlines()[1:] == [
        "failing: REJECTED CompileTimeAssertionFailure",
        "passing: PASS",
        "It fails as recorded.",
    ]

    code, said, complaint = ran(fresh, file, "failing")
    assert (code, said.startswith("REJECTED CompileTimeAssertionFailure")) == (10, True)
    assert "static_assert(A * B <= MOST and EVEN)" in complaint
    assert ran(fresh, file, "passing")[:2] == (0, "PASS\n")

    text = file.read_text()
    file.write_text(text.replace("MOST = gl.constexpr(64)", "MOST = gl.constexpr(4096)"))
    assert ran(fresh, file)[0] == 0  # mended
    file.write_text(text.replace("A * B <= MOST", "A * B < 0"))
    assert ran(fresh, file)[0] == 125  # nothing passes any more
    file.write_text(text.replace("import triton\n", "import triton_that_is_not_there\n", 1))
    assert ran(fresh, file)[0] == 125


LAYOUTS = {
    "abort": "import os\n    os.kill(os.getpid(), 6)",
    "hang": "import time\n    time.sleep(1000)",
    "budget": "",
}
"""What the layout's function does where C is 2."""

SHOWN = {
    "abort": "failing: CRASHED SIGABRT",
    "hang": "failing: HUNG deadline no end within 6 s",
    "budget": "failing: NO_RESOURCES budget 262,144 bytes of shared memory > 163,840",
}


@pytest.mark.long
@pytest.mark.parametrize("how", LAYOUTS)
def test_every_way_to_fail_is_shown_and_ends_one_process_of_the_script_only(project: Project, how: str) -> None:
    name = stored(project, Compare(KnobTerm("C"), Op.AT_MOST, Number(1)), joint=False)
    body = f"def layout(warps):\n    if warps == 2:\n        {LAYOUTS[how].replace('    ', '        ') or 'pass'}\n"
    project.write("kernels/types_of_mine.py", KERNELS["kernels/types_of_mine.py"].replace("def layout(warps):\n", body))
    kernel = KERNELS["kernels/pair.py"].replace("layout(gl.num_warps())", "layout(4 if C == 1 else 2)")
    if how == "budget":
        kernel = kernel.replace("layout(4 if C == 1 else 2)", "layout(gl.num_warps())")
        kernel += (
            "    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])\n"
            "    room = gl.allocate_shared_memory(gl.int32, [C, 32768], shared)\n"
            "    t = gl.arange(0, 32768, layout=layout)\n"
            "    for c in gl.static_range(C):\n"
            "        room.index(c).store(t + n)\n"
            "        gl.store(x + t, room.index(c).load(layout))\n"
        )
    project.write("kernels/pair.py", kernel)
    run = project.run("explain", name, "C=2", "--deadline", "6", "--repro", f"{how}.py", "--json")
    assert run.code == 1, run.stderr
    assert run.stderr == f"gluonmap: {how}.py shows it with Triton alone: C=2 fails, the baseline passes.\n"
    lines = json.loads(run.stdout)["repro"]["said"].splitlines()
    assert (lines[1].strip(), lines[2:]) == (SHOWN[how], ["passing: PASS", "It fails as recorded."])


def test_nothing_is_written_where_nothing_fails_and_nothing_is_compiled(project: Project) -> None:
    name = stored(project)
    run = project.run("explain", name, "A=1", "B=16", "--repro", "none.py")
    assert (run.code, run.stderr) == (0, "gluonmap: the configuration is feasible: none.py is not written.\n")
    run = project.run("explain", name, "A=16", "--repro", "none.py", "--no-compile")
    assert (run.code, "--repro compiles" in run.stderr) == (2, True)
    assert not (project.root / "none.py").exists()


@pytest.mark.long
def test_a_kernel_that_needs_torch_is_refused_by_name(project: Project) -> None:
    name = stored(project)
    text = KERNELS["kernels/types_of_mine.py"].replace("return gl.Bl", "torch.int8\n    return gl.Bl")
    project.write("kernels/types_of_mine.py", "import torch\n" + text)
    run = project.run("explain", name, "A=16", "--repro", "none.py")
    assert run.code == 2
    assert (
        "reaches torch.int8 (types_of_mine.py:1), and a script that needs Triton alone cannot have torch" in run.stderr
    )


class Elsewhere(Rule):
    """What fails of the whole for one reason fails of a part for another."""

    def __call__(self, config: Config) -> Verdict:
        found = super().__call__(config)
        if found.outcome is Outcome.REJECTED and config["C"] == 2:
            return msgspec.structs.replace(found, reason=Reason("ValueError", "C"))
        return found


def test_a_part_that_fails_for_another_reason_does_not_replace_the_whole() -> None:
    assert paired(Rule(), {"A": 16, "B": 64, "C": 2}).failing["C"] == 1
    found = paired(Elsewhere(), {"A": 16, "B": 64, "C": 2})
    assert found.failing == {"A": 16, "B": 64, "C": 2}
    assert found.verdict.reason == Reason("ValueError", "C")
