"""Exit statuses: signals that a process causes itself, and their names."""

from __future__ import annotations

import signal

import pytest

from gluonmap.model import exitcode


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
def test_a_signal_that_a_process_causes_itself_is_a_crash(status: int, name: str) -> None:
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
