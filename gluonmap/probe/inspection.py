"""Inspection of a kernel's file: the journal's head where it still holds, else an isolated import.

A head holds as long as the installation, the environment and the syntax trees of the kernel's files are the same. The
files may have moved, alone or with their folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gluonmap.model import exitcode, targets
from gluonmap.model.errors import OracleFault, UnknownKernel, UsageError
from gluonmap.model.inspection import Inspection, SourceFile
from gluonmap.model.targets import Target
from gluonmap.probe.campaign import Campaign
from gluonmap.probe.settings import IMPORT_DEADLINE_S
from gluonmap.runner import diagnostics, journal
from gluonmap.runner import environment as installation
from gluonmap.runner.journal import Head, Journal
from gluonmap.runner.processes import Ending
from gluonmap.source import syntax
from gluonmap.spec.probe_file import ProbeFile
from gluonmap.worker.protocol import Job, Limits


def head_for(campaign: Campaign, record: Journal, target: Target, probe: ProbeFile) -> Head:
    """Return the journal's head for today's circumstances: an earlier one if nothing has changed, else a new one.

    Raises:
        UsageError: the file cannot be imported, or holds no such kernel.
    """
    settings = campaign.settings
    kernel = settings.overrides.kernel or probe.kernel
    head = _current_head(campaign, record, target, kernel)
    if head is None and not record.heads:
        for other in sorted(settings.root.glob(f"probes/**/{campaign.path.stem}/{target.name}.jsonl")):
            if other != record.path and _is_of_this_file(other, campaign.path):
                record.adopt(other)
                head = _current_head(campaign, record, target, kernel)
                break
    if head is not None:
        return head
    inspection, environment = inspect(campaign, target, probe)
    folder = campaign.path.parent
    stamp = journal.stamp_of(
        inspection.kernel,
        relative_files(inspection.files, folder),
        target.name,
        campaign.installation,
        environment,
        settings.stubs,
    )
    head = Head(
        stamp=stamp,
        target=target.name,
        triton=campaign.triton,
        installation=campaign.installation,
        environment=environment,
        stubs=settings.stubs,
        inspection=inspection,
        folder=str(folder),
    )
    record.write(head)
    return head


def inspection_for_any_target(campaign: Campaign, probe: ProbeFile) -> Inspection:
    """Return what the kernel's file holds, from the journal of any target that is up to date, else from a child."""
    kernel = campaign.settings.overrides.kernel or probe.kernel
    for target in targets.TARGETS:
        path = campaign.journal_path(target)
        if path.is_file():
            # Journal raises UsageError where another process has the file open. A child inspects the kernel then.
            with contextlib.suppress(UsageError), Journal(path) as record:
                if head := _current_head(campaign, record, target, kernel):
                    return head.inspection
    return inspect(campaign, targets.TARGETS[0], probe)[0]


def inspect(campaign: Campaign, target: Target, probe: ProbeFile) -> tuple[Inspection, dict[str, str]]:
    """Import the kernel's file in a child; return what it holds, and the environment it was imported in.

    Raises:
        UsageError: the file cannot be imported, or holds no such kernel.
    """
    settings = campaign.settings
    kernel = settings.overrides.kernel or probe.kernel
    deadline_s = min(settings.deadline_s or IMPORT_DEADLINE_S, IMPORT_DEADLINE_S)
    job = Job("inspect", target.name, campaign.kernel_file(kernel))
    ending = campaign.isolation.ask(job, Limits(deadline_s, settings.memory_bytes))
    if ending.status == 0 and ending.evidence and ending.evidence.inspection:
        return ending.evidence.inspection, installation.environment()
    raise _import_error(campaign, ending, kernel, deadline_s)


def current_paths(campaign: Campaign, inspection: Inspection, folder: str = "") -> dict[str, Path]:
    """Return where the functions' files are today; `folder` is where the kernel's file was when it was inspected."""
    found: dict[str, Path] = {}
    for function in inspection.functions:
        parts = Path(function.file).parts
        for file in inspection.files:
            if Path(file.path).parts[-len(parts) :] == parts:
                found[function.file] = _moved_path(file.path, folder, campaign.path.parent)
    return found


def relative_files(files: Sequence[SourceFile], folder: Path) -> tuple[SourceFile, ...]:
    """Return the files under names that do not change when the kernel's folder moves."""

    def name(path: Path) -> str:
        return str(path.relative_to(folder)) if path.is_relative_to(folder) else "/".join(path.parts[-3:])

    return tuple(SourceFile(name(Path(f.path)), f.ast) for f in files)


def _current_head(campaign: Campaign, record: Journal, target: Target, kernel: str) -> Head | None:
    """Return the newest head whose circumstances are today's."""
    folder = campaign.path.parent
    for head in reversed(record.heads):
        inspection = head.inspection
        if (
            head.target == target.name
            and (inspection.kernel == kernel if kernel else inspection.entries == (inspection.kernel,))
            and head.installation == campaign.installation
            and head.environment == installation.environment()
            and head.stubs == campaign.settings.stubs
            and any(Path(f.path).name == campaign.path.name for f in inspection.files)
            and all(_is_unchanged(f, _moved_path(f.path, head.folder, folder)) for f in inspection.files)
        ):
            return head
    return None


def _is_of_this_file(journal_file: Path, kernel_file: Path) -> bool:
    """Return whether a journal at another place is of a kernel file with this name and code."""
    tree = syntax.tree_hash(kernel_file.read_bytes())
    try:
        lines = journal_file.read_bytes().splitlines()
        heads = [msgspec.json.decode(line, type=Head) for line in lines if b'"type":"head"' in line[:40]]
    except (OSError, msgspec.DecodeError):
        return False
    return any(Path(f.path).name == kernel_file.name and f.ast == tree for h in heads for f in h.inspection.files)


def _is_unchanged(file: SourceFile, path: Path) -> bool:
    try:
        return syntax.tree_hash(path.read_bytes()) == file.ast
    except OSError:
        return False


def _moved_path(path: str, old_folder: str, new_folder: Path) -> Path:
    """Return where a file is after the kernel's folder has moved from `old_folder` to `new_folder`."""
    if old_folder and Path(path).is_relative_to(old_folder):
        return new_folder / Path(path).relative_to(old_folder)
    return Path(path)


# -- an import that failed ---------------------------------------------------------------------------------------------


def _import_error(campaign: Campaign, ending: Ending, kernel: str, deadline_s: float) -> UsageError:
    """Return the error of an import that gave no inspection.

    Raises:
        OracleFault: the server was lost, which says nothing about the file.
    """
    file, evidence = campaign.settings.kernel_file, ending.evidence
    if ending.lost:
        raise OracleFault("the fork server was lost while it imported the kernel's file.")
    if evidence and evidence.reason and evidence.reason.kind == "KernelNotFound":
        return _kernel_not_found(file, kernel, evidence.reason.text.split("\n") if evidence.reason.text else [])
    if evidence and evidence.reason:
        reason = evidence.reason
        place = f" (line {evidence.line})" if evidence.line and Path(evidence.file) == campaign.path else ""
        advice = _import_advice(campaign, reason.kind, reason.text)
        return UsageError(f"{file} cannot be imported: {reason.kind}: {diagnostics.tidy(reason.text)}{place}{advice}")
    if ending.hung:
        return UsageError(f"{file} cannot be imported: its import did not end within {deadline_s:g} s.")
    how = exitcode.signal_name(ending.status) or f"exit status {ending.status}"
    return UsageError(
        f"{file} cannot be imported: its import ended the process ({how})."
        "\n  A kernel file must import without side effects; guard its scripts with if __name__ == '__main__'."
    )


def _kernel_not_found(file: Path, kernel: str, names: list[str]) -> UsageError:
    if kernel:
        return UnknownKernel(str(file), kernel, names, "--kernel NAME chooses one.")
    if not names:
        return UsageError(f"{file} holds no @gluon.jit or @triton.jit function.")
    return UsageError(
        f"{file} holds {len(names)} kernels: choose one with --kernel {names[0]} (or {', '.join(names[1:])})."
    )


def _import_advice(campaign: Campaign, kind: str, text: str) -> str:
    """Return a line on how to get past an exception during the import; empty: there is no such way."""
    stubs = campaign.settings.stubs
    if kind == "ModuleNotFoundError":
        module = text.split("'")[1].partition(".")[0] if "'" in text else "PACKAGE"
        return "\n  Install it here" + ("." if module in stubs else f", or stand in for it: --stub {module}")
    package = _topmost_package(campaign.path)
    if package and package not in stubs and kind not in ("SyntaxError", "StandInUsed"):
        return f"\n  If the __init__ of {package} cannot run here, leave it out: --stub {package}"
    return ""


def _topmost_package(path: Path) -> str:
    """Return the name of the topmost package that holds a file; empty: it is in no package."""
    top = ""
    for parent in path.parents:
        if (parent / "__init__.py").is_file():
            top = parent.name
    return top
