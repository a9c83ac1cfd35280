from .bullets import unsupported as unsupported
from .extraction import Reader as Reader, extractive as extractive, structured as structured
from .salience import read_parts as read_parts
