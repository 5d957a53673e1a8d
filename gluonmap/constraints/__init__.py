"""The meaning of constraints on configurations: evaluation, words, counting, and the formula for shared memory.

`model.relations` has constraints as plain data. The package imports `model` alone, and numpy; the modules that the
command line loads at its start import numpy inside functions.

Begin with `semantics.py`: the truth of a relation for a configuration, its knobs, its length and its wording. Then:

* `expressions`: the language of `--derive`, `--grid` and `--restrict`.
* `counting`: how many configurations meet all relations, uniform draws from them, and their list.
* `shared_memory`: the bytes of shared memory as a formula over knobs, fitted to reported sizes.
"""
