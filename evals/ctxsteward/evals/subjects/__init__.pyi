from . import answers as answers
from .http import post_json as post_json
from .ours import (
    EnvelopeDialogue as EnvelopeDialogue,
    EnvelopeSubject as EnvelopeSubject,
    named as named,
    prompt_from as prompt_from,
)
from .port import (
    Answer as Answer,
    Archive as Archive,
    Clock as Clock,
    Conversation as Conversation,
    Dialogue as Dialogue,
    FunctionSubject as FunctionSubject,
    Index as Index,
    Outputs as Outputs,
    Prompt as Prompt,
    Strategy as Strategy,
    Subject as Subject,
    Task as Task,
)
from .registry import (
    BASELINES as BASELINES,
    OURS as OURS,
    SUBJECTS as SUBJECTS,
    NamedSubject as NamedSubject,
    described as described,
    named_object as named_object,
    subject_named as subject_named,
    try_out as try_out,
)
