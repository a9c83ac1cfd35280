"""Read transcript formats from files into `Transcript` values.

Formats: JSONL and JSON of OpenAI chat, Anthropic or Gemini messages and request bodies, tau-bench runs, SWE-agent
`.traj`, LoCoMo. `format="auto"` recognizes the format, and `Transcript.format` names it.

>>> from ctxsteward.envelope.transcripts.files import parse_transcripts
>>> data = '[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]'
>>> (transcript,) = parse_transcripts(data)
>>> transcript.format, transcript.system, [entry.wire["content"] for entry in transcript.entries()]
('openai', ('Be brief.',), ['Hi'])
"""
