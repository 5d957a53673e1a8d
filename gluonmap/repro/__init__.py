"""Write stand-alone scripts that show a failure of the compiler with Triton alone.

Begin with `reproduce.py` (`write`). `pair` finds the failing configuration and the nearest one that passes, `inline`
copies all that the kernel reaches into one text, `script` writes the script around it, `trial` runs it. `budget`,
`outcome`, `descriptor` and `stand_in` are never imported: `script` copies their text into its scripts.

This package may import all packages but `cli`.
"""
