"""Questions to a stored map, answered without a compiler.

Begin with `observations.py` (one observation for each configuration that the map asked), then read `feasibility` (the
judgement of any configuration). The others build on these two:

* `explain`: why a configuration fails and what passes nearby, or which knobs matter at it.
* `reduced_space`: configurations that are predicted to be one program, by the rules of `equivalence`;
  `diverse_subset` picks few of many.
* `coverage`, `constraint_summary`, `interactions`, `constraint_graph`: the evidence of constraints, for reports.
* `config_files`: configurations in a file of JSON lines.

It may import `constraints` and `model`. It asks no oracle: a caller that wants compiles passes a function. Only
`constraint_graph` imports `networkx`.
"""
