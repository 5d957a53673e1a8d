"""Description of one kernel on one target: knobs with domains and a baseline, arguments, shape and grid.

The package reads probe files and shipped configuration files, and never executes them. It may import `source`,
`constraints` and `model`.

Begin with `description.py` (the frozen data that turns moves into candidates). `description_builder` infers it from the
inspection, a probe file (`probe_file`) and the command line's `Overrides`; `domains` infers the values to try.
`small_problems` finds the sizes of a run on the CPU.
"""
