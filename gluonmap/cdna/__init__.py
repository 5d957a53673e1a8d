"""The executor of machine code: it runs the amdgcn text of a compiled kernel (gfx942, gfx950) on numpy arrays.

    result = cdna.run(compiled, grid, {"x_ptr": x, "y_ptr": cdna.Unwritten(y), "n": 1000}, sanitize=True)

A right result is right under this model of the hardware, on these inputs. A detail that is not known for certain
raises `NotExecuted`. Not modelled are caches and their modifiers, the delays between dependent instructions that the
compiler fills with s_nop, rounding inside a matrix product, and the last bit of v_exp, v_log, v_rcp, v_rsq and v_sqrt.

The package imports numpy and no other package of gluonmap. Begin with `launch.py` (`run`). Then read `text` (parsing),
`program` (registers, blocks, accesses), `generate` (a Python function for each block), `machine` (waves and barriers),
`memory`, `lds` and `scratch`, and `sanitizer` with `waits`. `opcodes` has the tables of the arithmetic.
"""

from gluonmap.cdna.errors import BadLaunch, BadProgram, NotExecuted, StepLimit
from gluonmap.cdna.figures import CounterSummary
from gluonmap.cdna.findings import Finding, Kind, Place, grouped
from gluonmap.cdna.launch import TARGETS, PreparedKernel, Result, Unwritten, prepare, run
from gluonmap.cdna.values import decode, encode

__all__ = [
    "TARGETS",
    "BadLaunch",
    "BadProgram",
    "CounterSummary",
    "Finding",
    "Kind",
    "NotExecuted",
    "Place",
    "PreparedKernel",
    "Result",
    "StepLimit",
    "Unwritten",
    "decode",
    "encode",
    "grouped",
    "prepare",
    "run",
]
