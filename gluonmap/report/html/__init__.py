"""Turns maps into HTML: one self-contained file each, and an index over many. The same map gives the same bytes.

It may import what `report` may; `jinja2` is imported inside `templating`, since only pages need it. No module here
writes HTML text: a module returns frozen rows, and the templates in `templates/` lay them out.

Begin with `map_page`, which collects the sections of the page of one map. `diff_page` does the same for a comparison,
`site` writes pages and the index to disk, and `templating` renders.
"""
