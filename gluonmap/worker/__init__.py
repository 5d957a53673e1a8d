"""The code of the child processes: import, compile, launch, check, time and execute one candidate; race many.

Besides the hand-off this is the only package that imports Triton. It imports `source`, `constraints`, `model` and
`cdna`. The parent starts `python -m gluonmap.worker.server` and speaks `protocol`; it runs no other code of this
package.

Begin with `protocol.py` (the messages), `server` (one fork per candidate) and `jobs.carry_out` (the duty of a child).
Then follow a candidate: `load`, `compile`, `classify` and `fingerprint`; `launch` and `check` on a device, `execute` on
the CPU. `race` is a separate program.
"""
