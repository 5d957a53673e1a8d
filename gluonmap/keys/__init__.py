"""Which arguments of a kernel belong into `key=` of its autotuner, read from text: nothing is imported."""

from gluonmap.keys.advice import Advice, Argument, advise

__all__ = ["Advice", "Argument", "advise"]
