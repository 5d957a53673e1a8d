"""The race of a map's programs on this machine's GPU, and its results.

This package selects the programs, starts the process that races them (`gluonmap.worker.race`) and judges the times. It
may import `probe`, `handoff`, `spec`, `worker.protocol`, `worker.track` and `model`. It never uses the device itself.
A race here is always one of configurations; conflicting memory accesses are called data races.

Begin with `lineup.py`, then `run`, then `results`.
"""
