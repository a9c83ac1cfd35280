from .drain import Asker as Asker
from .report_objects import key_of as key_of, opened as opened
from .segment_log import (
    NewSegments as NewSegments,
    Rewrite as Rewrite,
    Segment as Segment,
    SessionLog as SessionLog,
    Takeover as Takeover,
    decode as decode,
    session_id as session_id,
    unreached as unreached,
)
from .write_behind import WriteBehind as WriteBehind
