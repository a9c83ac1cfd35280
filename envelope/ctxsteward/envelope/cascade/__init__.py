"""Context injection: a cascade's configuration, and what each of its phases is shown.

    cascade = load_cascade("cascade.yaml")
    opened = open_phase(store, cascade, "final_report", run="r-1", input={"topic": "tea"})
    envelope = builder.build(opened.session, policy=opened.policy)
    opened.session.append(reply, phase="final_report")

`phase_context` says the same without a store: configuration and past in, messages with their origins out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
