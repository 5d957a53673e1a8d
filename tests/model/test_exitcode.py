"""The table of exit statuses: documented for users, only ever added to."""

from __future__ import annotations

import signal

import pytest

from gluonmap.model import exitcode
from gluonmap.model.outcomes import OUTCOME_OF_STATUS, Outcome
from gluonmap.report.marks import OUTCOME_MARKS

DOCUMENTED = {
    0: "PASS",
    10: "REJECTED",
    11: "REJECTED",
    12: "NO_RESOURCES",
    13: "REJECTED",
    14: "WRONG",
    15: "CRASHED",
    16: "UNSAFE",
    17: "HUNG",
    20: "SKIPPED",
    21: "NOT_EXECUTED",
}


def test_every_documented_exit_status_maps_to_its_outcome() -> None:
    assert {status: outcome.value for status, outcome in OUTCOME_OF_STATUS.items()} == DOCUMENTED


@pytest.mark.parametrize("status", [1, 2, 3, 99, 126, 127, 128, 137, 139, 255])
def test_statuses_that_python_shells_and_lost_servers_leave_with_stand_for_no_outcome(status: int) -> None:
    assert status not in OUTCOME_OF_STATUS


def test_every_outcome_has_an_exit_status() -> None:
    assert set(Outcome) == set(OUTCOME_OF_STATUS.values())


def test_every_outcome_has_a_mark_of_its_own() -> None:
    assert set(OUTCOME_MARKS) == set(Outcome)
    assert len({mark.glyph for mark in OUTCOME_MARKS.values()}) == len(Outcome)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (-4, "SIGILL"),
        (-5, "SIGTRAP"),
        (-6, "SIGABRT"),
        (-7, "SIGBUS"),
        (-8, "SIGFPE"),
        (-11, "SIGSEGV"),
        (-31, "SIGSYS"),
    ],
)
def test_a_signal_that_a_process_draws_upon_itself_is_a_crash(status: int, name: str) -> None:
    assert exitcode.crashed(status)
    assert exitcode.signal_name(status) == name


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGXCPU", "SIGPIPE"])
def test_a_signal_that_others_send_is_no_crash(name: str) -> None:
    status = -int(signal.Signals[name])
    assert not exitcode.crashed(status)
    assert exitcode.signal_name(status) == name


def test_no_exit_status_from_zero_up_is_a_crash_or_has_a_signals_name() -> None:
    assert not any(exitcode.crashed(status) or exitcode.signal_name(status) for status in range(256))


def test_a_signal_without_a_name_is_named_by_its_number() -> None:
    assert exitcode.signal_name(-63) == "signal 63"
