"""The group of all commands, and what becomes of an error.

Exit codes: 0 done, 1 findings, 2 usage, 3 fault, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from gluonmap import __version__
from gluonmap.cli.check import check
from gluonmap.cli.diff import diff
from gluonmap.cli.engaged import engaged
from gluonmap.cli.explain import explain
from gluonmap.cli.export import export
from gluonmap.cli.find_default import find_default
from gluonmap.cli.key import key
from gluonmap.cli.learn import learn
from gluonmap.cli.lint import lint
from gluonmap.cli.predict import predict
from gluonmap.cli.probe import probe
from gluonmap.cli.race import race
from gluonmap.cli.repeat import repeat
from gluonmap.cli.report import report
from gluonmap.cli.run import run
from gluonmap.cli.space import space
from gluonmap.cli.targets import targets
from gluonmap.model.errors import GluonmapError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "auto_envvar_prefix": "GLUONMAP"}

COMMANDS: tuple[click.Command, ...] = (
    probe,
    find_default,
    run,
    report,
    explain,
    space,
    predict,
    repeat,
    diff,
    check,
    lint,
    key,
    export,
    race,
    engaged,
    learn,
    targets,
)
"""All commands, in the order in which a user meets them."""


class CommandGroup(click.Group):
    """A group whose errors are one message and an exit code, never a traceback.

    Errors are caught in `invoke`, before click's own handlers: those end Ctrl-C and a closed pipe with exit code 1,
    which is a finding.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`; click would sort them."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()  # a full disk must be an error here: at its exit Python only prints it
        except (click.ClickException, click.exceptions.Exit):
            raise
        except GluonmapError as error:
            click.echo(f"gluonmap: {error}", err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            click.echo("gluonmap: interrupted", err=True)
            sys.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(3)
        except OSError as error:  # a full disk, or a path of the user's that no file can have
            click.echo(f"gluonmap: {error.strerror or error}: {error.filename or 'standard output'}", err=True)
            if error.filename is None:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.exit(2 if error.errno == errno.ENAMETOOLONG else 3)
        except Exception:  # a bug of the tool; Python's own exit code 1 would be a finding
            import traceback

            traceback.print_exc()
            sys.exit(3)


@click.group(cls=CommandGroup, context_settings=CONTEXT)
@click.version_option(__version__, prog_name="gluonmap")
def cli() -> None:
    """Map the real tunable space of a Gluon or Triton kernel, without a GPU.

    Exit codes of all commands: 0 done, 1 findings (each command's help says which), 2 usage, 3 fault, 130 interrupted.

    Three commands to start with: map a kernel, ask why a configuration fails, audit the configurations that you ship.

    \b
    gluonmap probe my_kernel.py --target gfx950
    gluonmap explain reports/my_kernel.gfx950.json BLOCK_M=512
    gluonmap check my_kernel.py --configs configs/ --target gfx950
    """


for _command in COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Run the command that `sys.argv` names."""
    if sys.stdout is None:  # the parent process has closed it
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    # Characters that the encoding of a terminal or file lacks are escaped. JSON is written as bytes of UTF-8.
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    cli()


if __name__ == "__main__":
    main()
