"""One night of the steward from Python: three people wish for the same, and the profile's next version says it.

    python docs/examples/nightly_steward.py

The same settings as a YAML file serve `ctxsteward steward run --settings FILE`, cron and Prefect.
"""

import json
import tempfile
from pathlib import Path

from ctxsteward.envelope import Profile, open_store
from ctxsteward.steward.night.environment import of_this_process
from ctxsteward.steward.night.run import run_night
from ctxsteward.steward.settings import NightSettings
from ctxsteward.steward.setup import open_night

PROFILE = "persona: {voice: short and exact}\npolicies: {courier: Name the pickup day before you book.}\n"


def write_transcripts(folder: Path) -> None:
    """Three closed chats of three people, in OpenAI's form, with metadata beside the messages."""
    folder.mkdir()
    for person in ("ada", "ben", "hana"):
        messages = [
            {"role": "user", "content": f"Hello, this is {person}. When does pickup in Bonn end?"},
            {"role": "assistant", "content": "Pickup in Bonn ends at 20:00."},
            {"role": "user", "content": "Thank you. Never use emojis in your answers, please."},
        ]
        about = {
            "session": f"chat-{person}",
            "principal": person,
            "status": "closed",
            "started": "2026-11-20T09:00:00Z",
        }
        (folder / f"{person}.json").write_text(json.dumps({"messages": messages, "ctxsteward": about}))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_transcripts(folder / "chats")
        uri = f"file:{folder / 'store'}"
        with open_store(uri) as store:
            first = Profile.from_yaml(PROFILE)
            store.profiles("desk").commit(first, who="ada", when="2026-11-20T08:00:00Z", why="the first version")
        settings = NightSettings(store=uri, profile="desk", sources=(str(folder / "chats"),), night="2026-11-22")
        with open_night(settings, of_this_process()) as night:
            report = run_night(night)
            newest = night.store.profiles("desk").newest()
        print(report.outcome + ":", ", ".join(f"{stage} {count}" for stage, count in report.stages.items()))
        for record in newest.profile.meta:
            print(f"version {newest.number} says: {record.text} (from {' and '.join(record.sources)})")


if __name__ == "__main__":
    main()
