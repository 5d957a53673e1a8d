"""Probe: from a kernel's file to the map of a target, by compiles in child processes.

It may import `acquire` (what to ask about all knobs together), `runner` (who answers), `query`, `spec`, `source`,
`constraints`, `worker.protocol` and `model`.

Begin with `each_target.py`, the entry points, then `session.probe_target`, the steps of one map:

* Before the first question: `settings`, `campaign` (what all targets share), `target_choice`, `inspection`.
* One knob at a time: `screen` (candidates), `map_fold` (the map of the answers), `effects` and `reasons` (classes of
  knobs and why), `current_lines`, `spelling`.
* All knobs together: `joint_search`, with `restrictions`, `learner_answers`, `sameness` and `joint_result`; then
  `execute_programs`.
* The map's file: `map_writer`.

Other commands: `find_default` with `repair_baseline` (a failing baseline), `execute_one` (one configuration on the
CPU), `rebuild` and `recompile` (candidates from a stored map alone), `recorded_table` (a table of verdicts).
"""
