"""A chat service as gunicorn loads it: with `--preload` the store is opened before the workers are forked.

POST / with {"session", "id", "text"} appends a turn: the message, an envelope, an answer. 200 is the acknowledgement.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from ctxsteward.envelope import EnvelopeBuilder, open_store

App = Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]


def made(folder: str) -> App:
    """The application over a store in this folder that is drained and being written to already."""
    store = open_store(f"file:{folder}/store", journal=Path(folder) / "journal")
    builder = EnvelopeBuilder(model="gpt-4o")
    master = store.session("master")

    def beat() -> None:
        for number in count():
            master.append({"role": "user", "content": f"beat {number}"})
            time.sleep(0.001)

    threading.Thread(target=beat, daemon=True).start()  # it writes while workers are forked, and stays behind

    def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        asked = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        session = store.session(asked["session"])
        session.append({"role": "user", "content": asked["text"]}, id=asked["id"])
        builder.build(session)
        session.append({"role": "assistant", "content": f"Noted: {asked['text']}"}, id=f"{asked['id']}+")
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps({"process": os.getpid()}).encode()]

    return app
