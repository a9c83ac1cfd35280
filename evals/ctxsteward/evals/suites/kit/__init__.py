"""What every suite is made of.

Draws, scenarios and scores (`suite`), playing a scenario through the builder (`play`), models that judge
(`model_judges`), and texts to fill conversations with (`talk`, `pasted_content`).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
