"""Check that programs which are to be called equal stay equal in another compile, under another hash seed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from gluonmap.model.candidate import Candidate
from gluonmap.model.errors import OracleFault
from gluonmap.model.events import Event, Listener
from gluonmap.model.verdict import Fault, Verdict, digest_of
from gluonmap.runner import diagnostics, journal
from gluonmap.runner.oracle import Oracle
from gluonmap.runner.processes import Isolation
from gluonmap.worker.protocol import Job

OTHER_HASH_SEED = "1"


class DeterminismCheck:
    """Second compiles in processes with another hash seed.

    Code that depends on the order of a set, on a clock or on chance proves nothing by being equal once. Nor does code
    that remembers the first configuration it was traced with. These processes are therefore forks of a server that has
    seen no kernel, never of a warm one.
    """

    def __init__(self, jobs: int, listen: Listener) -> None:
        self.listen = listen
        self._isolation = Isolation(jobs=jobs, hash_seed=OTHER_HASH_SEED)
        self._stack = contextlib.ExitStack()
        self._open = False

    def __enter__(self) -> DeterminismCheck:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def start_for(self, oracle: Oracle, candidate: Candidate) -> None:
        """Begin to start the server if this candidate has not been checked; do not wait for it."""
        if oracle.journal.stability(oracle.stamp, journal.compile_key(candidate)) is None:
            self._start()

    def _start(self) -> None:
        if not self._open:
            self._stack.enter_context(self._isolation)
            self._isolation.start()
            self._open = True

    def confirm(self, oracle: Oracle, candidates: Iterable[Candidate]) -> None:
        """Record in the oracle's journal whether each candidate, all of which have passed, has the same program again.

        Raises:
            OracleFault: a candidate that has compiled has no answer now.
        """
        record = oracle.journal
        keyed = {journal.compile_key(c): c for c in candidates}
        unsure = {k: c for k, c in keyed.items() if record.stability(oracle.stamp, k) is None}
        if not unsure:
            return
        self._start()
        plan = "equal programs to compile again" if len(unsure) > 1 else "baseline once more"
        self.listen(Event("plan", plan, len(unsure)))
        compiles = {k: journal.compile_of(c) for k, c in unsure.items()}
        jobs = ((k, Job("compile", oracle.target, oracle.file, c)) for k, c in compiles.items())
        for key, ending in self._isolation.run(jobs, oracle.limits):
            first = oracle.known(unsure[key])
            second = diagnostics.answer_from(ending, oracle.functions, oracle.limits.deadline_s)
            if not isinstance(first, Verdict) or not isinstance(second, Verdict):
                text = second.text if isinstance(second, Fault) else "its first answer is gone"
                raise OracleFault(f"a candidate that has compiled has no answer the second time: {text}.")
            record.write(journal.Stability(oracle.stamp, key, digest_of(first) == digest_of(second)))
            self.listen(Event("answer", answer=second))
