"""Files of other tools, rendered from a map.

Each format has a module whose `render` returns the file's text; the same map gives the same bytes. `registry` lists the
formats. This package may import `handoff`, `query`, `spec`, `worker.arguments`, `constraints` and `model`. It neither
compiles nor prints.

Begin with `registry.py`, then `python` for a list of configurations or `kernel_tuner` for constraints as expressions.
`prune` writes a pruning function: its tables, followed by the second half of `pruner`'s own text. `dispatch` is written
by `gluonmap race`, not by `gluonmap export`.
"""
