"""Python statements for instructions, by family. Each `emit` returns whether the instruction belongs to its family."""
