"""Runner: candidates in child processes, their endings as answers, and the journal that keeps the answers.

It imports `worker.protocol` (the messages to a child), `source` and `model`; it imports neither Triton nor a kernel.

Begin with `oracle.py` (`Oracle.ask`): answers from the `journal` where it has them, else from children (`processes`),
whose endings `diagnostics` turns into answers. `determinism` compiles a second time what is to be called equal,
`environment` names the circumstances that an answer depends on, `interrupts` guards critical sections against Ctrl-C.
"""
