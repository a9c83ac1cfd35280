"""Forget one person in every session: their words are gone from logs, envelopes and derived text; others' words stay.

    python docs/examples/forget_a_person.py

Name who says something with `principal=` when you append it: forgetting goes by exactly that name.
"""

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.schemas import Erased
from ctxsteward.store.erasure.forget import forget


def main() -> None:
    store = open_store("memory:")  # with "s3://…" the bucket is reached as well
    builder = EnvelopeBuilder(model="gpt-4o", budgets=Budgets(dynamic_tokens=300))
    session = store.session("team-7")
    session.append({"role": "user", "content": "Never call me at work: 555-0147."}, principal="ann")
    for number in range(30):
        session.append({"role": "user", "content": f"Ticket {number} is done."}, principal="ben")
        session.append({"role": "assistant", "content": f"Ticket {number} is noted as done."})
        builder.build(session)
    print("shown before:", "555-0147" in builder.build(session).section("dynamic").text)

    done = forget(store, principal="ann", who="privacy desk", why="request 17", when="2026-11-22T09:00:00Z")
    print("forgot", done.messages, "message in", len(done.sessions), "session")

    session = store.session("team-7")
    print("shown after:", "555-0147" in builder.build(session).section("dynamic").text)
    print("ben's words stay:", session.resolve("§2").text)
    try:
        session.resolve("§1")
    except Erased as error:
        print(error)


if __name__ == "__main__":
    main()
