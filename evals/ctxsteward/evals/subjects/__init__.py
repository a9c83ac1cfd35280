"""Subjects: the context strategies that suites judge, ours and others, through one interface.

A strategy is a function of a `Conversation`, or an object that opens a `Dialogue`; `subject_named` finds one by its
name, Python path or address. `BASELINES` are simple strategies to measure against.
"""

from .port import Answer, Conversation, Dialogue, Prompt, Subject, Task

__all__ = ["Answer", "Conversation", "Dialogue", "Prompt", "Subject", "Task"]
