"""Check what a project ships: lists of configurations, restrictions and pruning functions.

Begin with `run.py`, which audits the chosen targets with compiles, or with `from_map.audit_from_map`, which asks a map
alone.

* `request` and `shipped_files` hold the question, `findings` the answer.
* `bound_entries` sorts the keys of an entry by who reads them, `entry_judge` judges entries, `blame` finds the values
  that make one fail, `entry_findings` turns the judgements into findings.
* `rule_space` is the part of a map that rules are judged on, `rule_check` counts a rule's mistakes on it, `rule_run`
  runs functions and compiles counterexamples, `rule_findings` turns the counts into findings.

This package may import `probe`, `runner` and the packages below them. Only `compiles`, `reference_map`, `rule_run`,
`blame`, `entry_judge`, `target_audit` and `run` start a compile; the other modules work on data.
"""
