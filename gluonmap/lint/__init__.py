"""Find traps of tuning in the text of Triton and Gluon files; advise on the key of an autotuner.

Nothing is imported, compiled or run. Begin with `run.py` and with `RULES` in `findings`; the `*_rules` modules hold the
rules, `linted_file`, `flat_trees` and `nodes` the file that they read. `key_advice.advise` answers `gluonmap key`; it
is not imported here, because `lint` alone is the public surface.

The package may import `source`, `spec`, `constraints` and `model`, but neither Triton nor torch.
"""

from gluonmap.lint.findings import MOST_CONFIGS, RULES, Linted, LintFinding, LintRule, LintSettings, chosen_codes
from gluonmap.lint.run import lint

__all__ = ["MOST_CONFIGS", "RULES", "LintFinding", "LintRule", "LintSettings", "Linted", "chosen_codes", "lint"]
