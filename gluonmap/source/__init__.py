"""Source text of a kernel: what it reads, what its arguments are, what its layouts demand, where it can be compiled.

This package reads source text. It never imports or executes a kernel. It may import `model` and `constraints`.

Begin with `syntax.py` (trees, hashes, names, calls) and `code_lines` (lines that survive edits of comments). Above
them: `reads` follows a parameter to the uses of its value, `argument_kinds` and `contiguity` infer properties of the
arguments, `literal_rules` reads the demands of layouts and assertions (`symbolic` holds the values, `layout_demands`
the rules of each layout class), and `target_api` finds the calls that tie a kernel to some targets (`run_time_values`:
the conditions that only the running kernel decides).
"""
