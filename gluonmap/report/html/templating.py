"""Templates of all HTML pages: style and script are in the file, nothing is fetched, and text is never markup.

A page is a template in `templates/` that extends `base.html.jinja` (blocks `title`, `main`) and takes
shared macros from `pieces.html.jinja`.
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
"""Number of characters that a page shows of one compiler message; the map has all."""


def render_template(template: str, **context: Any) -> bytes:
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
    # The policy of the page names the script by its hash, so injected text could not run as script.
    made.globals["script_hash"] = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return made


def _stored(name: str) -> str:
    return (resources.files("gluonmap.report.html") / "templates" / name).read_text("utf-8").strip()


def _shown(value: Any) -> Any:
    """Return text with every character visible, and markup unchanged: the `finalize` of all templates."""
    return value if hasattr(value, "__html__") else visible(str(value))


def _lines(text: str) -> Markup:
    """Return a text of several lines as markup that keeps the lines."""
    from markupsafe import Markup, escape

    return Markup("\n").join(escape(visible(line)) for line in text.splitlines())
