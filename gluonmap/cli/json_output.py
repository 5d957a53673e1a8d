"""JSON on standard output."""

from __future__ import annotations

from collections.abc import Sequence

import click


def print_one_or_list(items: Sequence[object]) -> None:
    """Print the only item as a JSON document, and several as a list."""
    from gluonmap.model import codec

    click.echo(codec.dumps(items[0] if len(items) == 1 else list(items)), nl=False)
