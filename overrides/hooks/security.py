"""Gives each page a Content-Security-Policy: scripts of the site's own origin, and by their hash those that the theme writes into the page."""

from __future__ import annotations

import base64
import hashlib
import re

from mkdocs.plugins import event_priority

_SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<code>.*?)</script>", re.DOTALL)
_POLICY = (
    "default-src 'none'; script-src 'self'{hashes}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'self'"
)


def policy(page: str) -> str:
    """The policy under which the page's own inline scripts run, and no others."""
    hashes = []
    for script in _SCRIPT.finditer(page):
        attributes = script["attributes"]
        # Blocks of data are never run, so the policy does not ask for their hash.
        if "src=" in attributes or "json" in attributes:
            continue
        digest = base64.b64encode(hashlib.sha256(script["code"].encode("utf-8")).digest()).decode("ascii")
        if digest not in hashes:
            hashes.append(digest)
    return _POLICY.format(hashes="".join(f" 'sha256-{digest}'" for digest in hashes))


# Last of all: what is hashed must be what is written.
@event_priority(-200)
def on_post_page(output: str, page, config) -> str:
    if config.extra["serving"]:  # MkDocs adds a script of its own to reload the page
        return output
    return output.replace("<head>", f'<head><meta http-equiv="Content-Security-Policy" content="{policy(output)}">', 1)
