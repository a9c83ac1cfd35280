"""What shortens text and cites what it kept.

`extractive` is the default summarizer: no model, verbatim quotes, at least one citation a bullet.
`templates` holds the prompts for summarizers that ask a model.
"""

from .extraction import extractive
from .quotes import unsupported
from .templates import fill_template, strip_analysis

__all__ = ["extractive", "fill_template", "strip_analysis", "unsupported"]
