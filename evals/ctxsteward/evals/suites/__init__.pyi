from . import catalogue as catalogue, gates as gates
from .catalogue import NAMES as NAMES, suite_named as suite_named
from .gates import Gates as Gates, shipped_gates as shipped_gates
from .results import play_one as play_one, played as played
from .verbatim import make as make, play_verbatim as play_verbatim
