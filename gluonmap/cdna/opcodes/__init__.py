"""What the opcodes compute, by family: tables of name → kinds of operands and a function over numpy arrays."""
