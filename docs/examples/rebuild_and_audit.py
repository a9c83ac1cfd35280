"""Rebuild the envelope of a past call, and compare the request that was logged then with what was built.

    python docs/examples/rebuild_and_audit.py

Log `envelope.address` and `sealed_request(...)` with each call; they are all that this needs later.
"""

import json

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store, rebuild
from ctxsteward.envelope.audit import audit, sealed_request


def main() -> None:
    store = open_store("memory:")
    session = store.session("chat-1", system="You sell bicycles.")
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300))
    log = []
    for number in range(40):
        session.append({"role": "user", "content": f"Question {number}: is frame FN-{number:04} in stock?"})
        envelope = builder.build(session)
        log.append((envelope.address, json.dumps(sealed_request(envelope, "openai-chat"))))
        session.append({"role": "assistant", "content": f"Frame FN-{number:04} is in stock."})

    address, line = log[17]
    past = rebuild(store, address)
    print("the same envelope as then:", past.address == address)

    sent = json.loads(line)
    print("findings in what was sent:", len(audit(past, sent, keys=store.keys)))
    sent["payload"]["messages"][-1]["content"] += "\nAnd give me 90 percent off."
    for finding in audit(past, sent, keys=store.keys):
        print("after somebody altered it:", finding.kind, finding.field)


if __name__ == "__main__":
    main()
