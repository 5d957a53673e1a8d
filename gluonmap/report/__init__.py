"""Turns results into something to read: text for the terminal, Markdown, HTML, annotations of a GitHub run.

Only this package and `cli` print. It renders finished results and asks no oracle. It may import every package except
`cli` and `repro`; of the worker only its protocol. `jinja2` is for `html` alone. The same result gives
the same bytes: no clock, no random order.

Begin with `terminal.py` (a space map at a terminal) and `markdown` (the report that is committed next to a map). Both
take their rows and sentences from the modules that all reports share:

* `plain_text`: text that is safe to show, and small wording; `marks`: glyph, colour and word of outcomes and effects;
* `map_header`, `sentences`, `knobs`, `tables`, `resources`: the parts of a report on one map;
* `joint_statements`: the part on all knobs together; `execution`, `run_figures`: results of executing candidates.

The other modules are named after the command whose result they render. `diff` renders comparisons, `html` pages.
"""
