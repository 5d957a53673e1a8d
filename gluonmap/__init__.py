"""gluonmap maps the real tunable space of a Gluon or Triton kernel, without a GPU."""

__version__ = "0.1.0"
