from .adapter import PEERS as PEERS
from .senders import AdapterProcess as AdapterProcess, canonical as canonical
