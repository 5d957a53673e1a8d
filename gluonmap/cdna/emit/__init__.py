"""Python statements for instructions, by family. Each `emit` says whether the instruction was one of its own."""
