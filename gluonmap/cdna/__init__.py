"""Executes the amdgcn text of a compiled kernel (gfx942, gfx950) on numpy arrays. Needs numpy alone.

    result = cdna.run(compiled, grid, {"x_ptr": x, "y_ptr": cdna.Unwritten(y), "n": 1000}, sanitize=True)

Right results are right under this model of the hardware, on these inputs. What is not known for certain raises
`NotExecuted`. What the model leaves out: caches and their modifiers, the waits between dependent instructions that the
compiler fills with s_nop, rounding inside a matrix product, and the last bit of v_exp, v_log, v_rcp, v_rsq and v_sqrt.
"""

from gluonmap.cdna.errors import BadLaunch, BadProgram, NotExecuted, StepLimit
from gluonmap.cdna.figures import Summary
from gluonmap.cdna.findings import Finding, Kind, Place, grouped
from gluonmap.cdna.launch import TARGETS, Kernel, Result, Unwritten, prepare, run
from gluonmap.cdna.values import decode, encode

__all__ = [
    "TARGETS",
    "BadLaunch",
    "BadProgram",
    "Finding",
    "Kernel",
    "Kind",
    "NotExecuted",
    "Place",
    "Result",
    "StepLimit",
    "Summary",
    "Unwritten",
    "decode",
    "encode",
    "grouped",
    "prepare",
    "run",
]
