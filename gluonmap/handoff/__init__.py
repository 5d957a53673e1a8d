"""The hand-off of a map's verified configurations to the standard Triton autotuner.

Begin with `launches.py`, which selects the configurations as plain data; `conversion` makes each a `triton.Config`.
`tuner` (`@gluonmap.autotune`) and `prune` (`early_config_prune`) use them in a user's program, with the map of the
device that `active` finds. `python_values` makes the objects that a map stores as Python text, and `descriptors` sets
the blocks of tensor descriptors.

It may import `query`, `spec` and the packages below. Only functions that run in the user's process import Triton:
`launches`, which the command line uses too, does not need it.
"""

from gluonmap.handoff.conversion import configs
from gluonmap.handoff.launches import dropped, launches
from gluonmap.handoff.loaded_map import LoadedMap
from gluonmap.handoff.prune import early_config_prune
from gluonmap.handoff.tuner import autotune

__all__ = ["LoadedMap", "autotune", "configs", "dropped", "early_config_prune", "launches"]
