"""The data that all packages share: questions, answers, maps, and the tables of targets and outcomes.

Everything here is frozen data with small functions on it. The package imports no other package of gluonmap, and only
`codec` touches files.

Begin with `candidate.py` (one question to the compiler) and `verdict` (its answer), then `space_map` with `knobs`, and
`joint_map` with `relations`: the stored map of one kernel on one target. Each of these is one table from which the rest
of the package derives its facts: `targets` and `outcomes`, with the exit statuses of `exitcode`.

* `inspection`: what importing a kernel file reports. `dtypes`: types of run-time arguments.
* `race_record` and `noise`: the record of a race, and the statistics that compare two programs.
* `errors`: the error tree. `events`: messages to a waiting user. `codec`: reading and writing JSON.
* `wording`: lists of names in sentences.
"""
