"""Tables of the opcodes by family: name → kinds of operands and a function over numpy arrays."""
