"""The request path: a session in, a bounded, typed, cited envelope out.

    store = open_store("file:./.ctxsteward")
    session = store.session("s-42", profile=Profile.from_text("You are …"))
    session.append({"role": "user", "content": "…"})
    envelope = EnvelopeBuilder(model="gpt-4o").build(session)
    client.chat.completions.create(model="gpt-4o", **envelope.render("openai-chat"))

or around a client that is handed whole histories: ``client = wrap(OpenAI(), store)`` (`integrations`).

Importing this reads no clock, file or environment and loads no tokenizer, model or SDK.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
