"""What shortens text and cites what it kept.

`extractive` is the default summarizer: no model, verbatim quotes, at least one citation a bullet. `Reader`
reads a conversation for what replaces what.
`templates` holds the prompts for summarizers that ask a model.
"""

from .extraction import extractive
from .quotes import unsupported
from .statements import Reader
from .templates import fill_template, strip_analysis

__all__ = ["Reader", "extractive", "fill_template", "strip_analysis", "unsupported"]
