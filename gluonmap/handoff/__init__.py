"""The hand-off: what a map knows, given to the standard Triton autotuner. Triton is imported by whoever calls."""

from gluonmap.handoff.conversion import configs
from gluonmap.handoff.launches import dropped, launches
from gluonmap.handoff.loaded_map import LoadedMap
from gluonmap.handoff.prune import early_config_prune
from gluonmap.handoff.tuner import autotune

__all__ = ["LoadedMap", "autotune", "configs", "dropped", "early_config_prune", "launches"]
