"""Difference of two maps, as data. `report.diff` renders it.

Begin with `comparison.py`: `difference` makes a `bridge.Bridge`, which translates configurations between the two maps,
and hands it to one module for each part: `circumstances`, `knobs`, `constraints`, `spaces`, `flips`, `resources`, and
`regressions`, which judges flips and resources.

It may import `handoff` (the configurations that a map hands over), `query`, `constraints` and `model`. It compiles
nothing.
"""
