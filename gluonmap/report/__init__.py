"""Space maps as people read them: `terminal` prints one, `markdown` writes the committed report."""
