"""``python -m ctxsteward.evals.dashboards FOLDER``: write the dashboard and the rules anew; with ``--pictures FOLDER``
also pictures of the panels, for which the programs of Debian's package ``prometheus`` must be there; with ``--guide
FILE`` the tables of that page.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .files import alert_rules, dashboard, recording_rules, with_tables


def files() -> dict[str, str]:
    """Every written file's text, by name."""
    return {
        "ctxsteward.json": json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n",
        "recording.yml": recording_rules(),
        "alerts.yml": alert_rules(),
    }


def main(argv: list[str] | None = None) -> int:
    """Write them."""
    parser = argparse.ArgumentParser(prog="python -m ctxsteward.evals.dashboards", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER", help="draw the panels from a real run, too")
    parser.add_argument("--guide", type=Path, metavar="FILE", help="put the tables between this page's markers, too")
    options = parser.parse_args(argv)
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (options.folder / name).write_text(text, encoding="utf-8", newline="\n")
        print(options.folder / name)
    if options.guide is not None:
        text = with_tables(options.guide.read_text(encoding="utf-8"))
        options.guide.write_text(text, encoding="utf-8", newline="\n")
        print(options.guide)
    if options.pictures is not None:
        from .pictures import draw_all

        for path in draw_all(options.pictures, options.folder):
            print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
