"""Maps as HTML: one self-contained file each, and an index over many. The same map gives the same bytes.

`shell` is what any page of the tool stands in; `page` is the page of one map, `site` a folder of them.
"""
