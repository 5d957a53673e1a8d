"""The shell of every HTML page of the tool: style and script inside the file, nothing fetched, no text that is markup.

A page is a template in `templates/` that extends `base.html.jinja` (blocks `title`, `sections`, `main`) and takes what
it repeats from `pieces.html.jinja`.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Any

from gluonmap.report.plain_text import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MOST_WHOLE = 20_000
"""Characters of one text of a compiler that a page holds; the map holds all."""


def page(template: str, **context: Any) -> bytes:
    """Return the page that a template makes of its context, as UTF-8.

    Text of the context shows literally, whatever it holds: tags, entities, control characters, lone surrogates.
    """
    return (_environment().get_template(template).render(context).rstrip("\n") + "\n").encode()


@functools.cache
def _environment() -> Environment:
    import jinja2
    from markupsafe import Markup

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("gluonmap.report.html"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = _stored("page.js")
    made.filters["lines"] = _lines
    made.globals["most_whole"] = MOST_WHOLE
    made.globals["style"] = Markup(_stored("page.css"))
    made.globals["script"] = Markup(script)
    # By its hash, so that nothing else in the page could run as script even if it got there.
    made.globals["script_hash"] = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return made


def _stored(name: str) -> str:
    return (resources.files("gluonmap.report.html") / "templates" / name).read_text("utf-8").strip()


def _shown(value: Any) -> Any:
    """What a template prints: text of ours and of others with every character seen; markup as it is."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _lines(text: str) -> Markup:
    """A text of several lines, its lines kept."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(visible(line)) for line in text.splitlines())
