"""What shortens text and cites what it kept.

`extractive` is the default summarizer: no model, verbatim quotes, at least one citation a bullet. `replacing` tells,
message by message, which earlier ones say something that this one replaces.
`templates` holds the prompts for summarizers that ask a model.
"""

from .extraction import extractive
from .quotes import unsupported
from .replacing import replacing
from .templates import fill_template, strip_analysis

__all__ = ["extractive", "fill_template", "replacing", "strip_analysis", "unsupported"]
