"""Difference of two maps, as data. `report.diff` renders it.

Begin with `comparison.difference`. It makes a `bridge.Bridge`, which says which configuration of one map is which of
the other, and hands it to one module for each part: `circumstances`, `knobs`, `constraints`, `spaces`, `flips`,
`resources`, and `regressions`, which judges flips and resources.

It may import `handoff` (the configurations that a map hands over), `query`, `constraints` and `model`. It compiles
nothing.
"""
