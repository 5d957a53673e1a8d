"""What a project already ships, judged: lists of configurations, restrictions and pruning functions.

`shipped` reads files, `entries` binds what stands there to a kernel's parameters, `judged` and `rules` turn answers and
a map into findings. Nothing here compiles or imports a kernel: `gluonmap.audit.run` asks.
"""
