"""What differs between two maps, in words: for the terminal, as Markdown, at the lines of a pull request, as a page.

A is the first map, B the second: A → B.
"""
