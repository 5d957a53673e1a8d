"""The command line: one module per command, named after it.

This package parses options, calls the packages below it and prints their results. No other package but `report`
prints. It may import every package except the parts of `worker` that load Triton (`jobs`, `compile`, `preload`,
`server`). Nothing imports it.

Begin with `command_group.py`: the group of all commands and its error handling. Then read `probe`, the command that
writes maps.
Modules that several commands share: `option_values` (texts of options as values), `kernel_options` and
`compile_options` (options that several commands have), `map_output` (a map on the terminal and in files),
`json_output`, `race_inputs`, `progress`, `completion` (the TAB key) and `reexec` (--python).

Command modules import other packages inside functions, because `gluonmap --help` and every TAB import all of them.
`gluonmap.probe.each_target` alone takes 320 ms to import (it loads numpy), `gluonmap.model.codec` 40 ms (msgspec), rich
40 ms; click takes 20 ms. At the top of a module are the standard library, click, this package and
`gluonmap.model.errors`.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line; console scripts of every release call it here."""
    from gluonmap.cli import command_group  # a package that is only named imports none of its commands

    command_group.main()
