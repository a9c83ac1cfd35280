from .builder import EnvelopeBuilder as EnvelopeBuilder
from .snapshots import Snapshots as Snapshots
