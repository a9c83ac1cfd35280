"""Parts of every suite.

Draws, scenarios and scores (`suite`), playing a scenario through the builder (`play`), models that judge
(`model_judges`), and texts to fill conversations with (`talk`, `pasted_content`).
"""

from .model_judges import ScriptedModel
from .suite import EvalSuite, Metric, Scenario, Score

__all__ = ["EvalSuite", "Metric", "Scenario", "Score", "ScriptedModel"]
