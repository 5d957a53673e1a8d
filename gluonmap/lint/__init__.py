"""The traps of tuning, found in the text of Triton and Gluon files: nothing is imported, compiled or run."""

from gluonmap.lint.finding import MOST_CONFIGS, RULES, Finding, Linted, Rule, Settings, chosen_codes
from gluonmap.lint.run import lint

__all__ = ["MOST_CONFIGS", "RULES", "Finding", "Linted", "Rule", "Settings", "chosen_codes", "lint"]
