from .files import (
    FORMATS as FORMATS,
    formats_with as formats_with,
    is_transcript_list as is_transcript_list,
    parse_transcripts as parse_transcripts,
    read_transcript as read_transcript,
    read_transcripts as read_transcripts,
)
from .strict_json import (
    MAX_PIPE_BYTES as MAX_PIPE_BYTES,
    MAX_VALUE_BYTES as MAX_VALUE_BYTES,
    InputLine as InputLine,
    decode as decode,
    memory_input as memory_input,
    open_input as open_input,
    show as show,
)
from .transcript import Transcript as Transcript, TranscriptEntry as TranscriptEntry
