"""Turns the comparison of two maps into words: for the terminal, as Markdown, and at the lines of a pull request.

A is the first map, B the second: A → B. The comparison itself is computed by `gluonmap.diff`. This package may import
what `report` may, except `report.html`, which builds its own page from the statements made here.

Begin with `sections`: it names the sections of every report and the module that fills each. `headline` has the one
sentence, `rendered` prints.
"""
