"""What a map knows, written for other tools: one module a format. Each gives text, always the same for the same map."""
