"""The comment under a pull request: where its preview is, and which figures it changes, or why there is no preview."""

from __future__ import annotations

import json
from pathlib import Path

from macros import changes_report

MARK = "<!-- preview -->"
MOST = 65_000
"""Signs; GitHub takes 65536."""
REPORT = "preview/changes/changes.json"


def published(address: str, commit: str, site: Path) -> str:
    """The comment for a preview that is published at an address."""
    head = (
        f"{MARK}\n**[Preview]({address})** of {commit[:12]}; new pages appear some minutes after this comment. "
        f"[All changed figures]({address}preview/changes/)\n\n"
        "The code of this pull request has counted them, so a change of that code can hide figures.\n\n"
    )
    return head + _report(site / REPORT, MOST - len(head))


def refused(commit: str, reasons: str) -> str:
    """The comment for a preview that is not published."""
    lines = [changes_report.safe(line) for line in reasons.splitlines()]
    return f"{MARK}\n**No preview** of {commit[:12]}: what it has built is not what the site is made of.\n\n" + "\n".join(f"- {line}" for line in lines)


def _report(file: Path, most: int) -> str:
    """The report as Markdown. Whatever a stranger has put into the file, at worst there is none."""
    try:
        text = changes_report.markdown(json.loads(file.read_text(encoding="utf-8")), most)
    except Exception:  # any kind: the file is a stranger's, and the comment has to come all the same
        return "Its report of changed figures cannot be read.\n"
    return text if len(text) <= most else "Its report of changed figures is too long.\n"
