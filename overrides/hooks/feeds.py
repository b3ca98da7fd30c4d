"""Cleans the feeds that the RSS plugin wrote: only what is true and valid, and no second feed that nobody is told of.

The plugin writes null where a post has no picture, takes the time of the build for the day of a change, and always
writes a feed sorted by that day too.
"""

from __future__ import annotations

import json
from pathlib import Path

from mkdocs.plugins import event_priority

_SECOND = ("feed-updated.xml", "feed-updated.json")


def clean(feed: dict, changed: dict[str, str]) -> dict:
    """The JSON feed without empty fields; `changed` has the days of those posts that say when they changed."""
    for item in feed["items"]:
        item.pop("date_modified", None)
        if item["url"] in changed:
            item["date_modified"] = f"{changed[item['url']]}T00:00:00+00:00"
    feed["items"] = [_filled(item) for item in feed["items"]]
    return _filled(feed)


def _filled(fields: dict) -> dict:
    return {name: value for name, value in fields.items() if value not in (None, [])}


@event_priority(-100)
def on_post_build(config) -> None:
    folder = Path(config.site_dir)
    for name in _SECOND:
        (folder / name).unlink(missing_ok=True)
    path = folder / "feed.json"
    if path.is_file():
        changed = {
            post.canonical_url: post.config.date.updated.date().isoformat()
            for post in config.plugins["material/blog"].blog.posts
            if post.config.date.updated
        }
        feed = clean(json.loads(path.read_text(encoding="utf-8")), changed)
        path.write_text(json.dumps(feed, ensure_ascii=False), encoding="utf-8")
