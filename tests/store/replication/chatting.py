"""A chat service to be killed: ``python chatting.py URI JOURNAL SESSIONS``; prints each message once acknowledged."""

from __future__ import annotations

import itertools
import sys
import threading

from ctxsteward.envelope import Budgets, EnvelopeBuilder, open_store
from ctxsteward.store.crypto.keyring import MasterKeys


def main(uri: str, journal: str, sessions: int) -> None:
    store = open_store(uri, journal=journal, keys=MasterKeys(b"s" * 32))
    writing = threading.Lock()

    def chat(number: int) -> None:
        session = store.session(f"s{number}")
        builder = EnvelopeBuilder(tokenizer="o200k_base", budgets=Budgets(dynamic_tokens=300))
        for count in itertools.count():
            text = f"{session.id}: message {count} of a conversation that goes on through an outage"
            session.append({"role": "user", "content": text})
            with writing:
                print(text, flush=True)
            builder.build(session)

    threads = [threading.Thread(target=chat, args=(number,)) for number in range(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
