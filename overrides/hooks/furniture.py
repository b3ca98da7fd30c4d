"""What stands round an article: its heading apart from its text, reading time, dates, staleness, and the list of all articles."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import date, datetime
from html.parser import HTMLParser
from pathlib import Path

from material.plugins.blog.structure import Post
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page
from site_pages import CATEGORIES, is_draft, rank
from site_words import NAMES, WORDS_PER_MINUTE

_HEADING = re.compile(r"\s*<h1(?P<attributes>[^>]*)>(?P<text>.*?)</h1>", re.DOTALL)
_PERMALINK = re.compile(r'<a class="headerlink".*?</a>', re.DOTALL)
# So many articles and posts stand on the home page.
NEWEST = 5

_WORD = re.compile(r"\w+(?:[.,'’\-]\w+)*")


class _Prose(HTMLParser):
    """The running text of a page: charts, tables, code and scripts are looked at, not read."""

    _SKIPPED = frozenset({"svg", "table", "pre", "script", "style"})

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self._depth += tag in self._SKIPPED

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag in self._SKIPPED

    def handle_data(self, data: str) -> None:
        if not self._depth:
            self.text.append(data)


def reading_minutes(content: str, locale: str) -> int:
    """Whole minutes to read the prose of a page, at least one."""
    prose = _Prose()
    prose.feed(content)
    words = len(_WORD.findall(" ".join(prose.text)))
    return max(1, (words + WORDS_PER_MINUTE[locale] // 2) // WORDS_PER_MINUTE[locale])


def blob_id(path: Path) -> str:
    """The name under which Git keeps the contents of a file (`git hash-object`)."""
    contents = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(contents) + contents, usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Furniture:
    """What the templates of an article need beside its text."""

    heading: str
    heading_attributes: str
    body: str
    minutes: int
    category: str | None
    published: date | None
    reviewed: date | None
    draft: bool
    stale: str | None


@event_priority(-60)
def on_page_content(content: str, page: Page, config, files) -> str:
    found = _HEADING.match(content)
    heading = _PERMALINK.sub("", found["text"]) if found else str(page.meta.get("title") or page.title or "")
    reviewed = page.meta.get("reviewed")
    category = page.meta.get("category")
    minutes = reading_minutes(content, config.extra["locale"])
    if isinstance(page, Post):
        page.config.readtime = minutes  # the blog's own count takes tables and code for text
    page.furniture = Furniture(
        heading=heading,
        heading_attributes=found["attributes"] if found else "",
        body=content[found.end():] if found else content,
        minutes=minutes,
        category=category if category in CATEGORIES else None,
        published=published(page),
        reviewed=reviewed if isinstance(reviewed, date) else None,
        draft=bool(page.file.abs_src_path) and is_draft(page.file.abs_src_path),
        stale=_outdated_source(page, config),
    )
    if page.is_homepage:
        page.meta.setdefault("template", "home.html")
    return content


def _outdated_source(page: Page, config) -> str | None:
    """The name of the language whose page has changed since this one was translated from it."""
    translation = page.meta.get("translation")
    if not isinstance(translation, dict) or translation.get("from") not in NAMES:
        return None
    source = Path(config.docs_dir).parent / translation["from"] / page.file.src_uri
    if not source.is_file() or blob_id(source) == translation.get("blob"):
        return None
    return NAMES[translation["from"]]


@event_priority(0)
def on_env(env, config, files):
    pages = [file.page for file in files.documentation_pages(inclusion=_shown(config)) if file.page]
    articles = [page for page in pages if getattr(page, "furniture", None) and page.furniture.category and not page.is_index]
    listed = [page for page in articles if "/posts/" not in f"/{page.file.src_uri}"]
    env.globals["articles"] = sorted(listed, key=lambda page: rank(page.file))
    posts = [page for page in pages if page.file.src_uri.startswith("blog/posts/")]
    known = [page for page in [*env.globals["articles"], *posts] if published(page)]
    env.globals["newest"] = sorted(known, key=published, reverse=True)[:NEWEST]
    env.globals["article_day"] = published
    addresses = {page.file.src_uri: page.url for page in pages}
    env.globals["address_of"] = addresses.get
    return env


def published(page: Page) -> date | None:
    """The day on which an article or a post came out; of an article that does not say, the day of its last review."""
    dates = page.meta.get("date")
    day = dates.get("created") if isinstance(dates, dict) else page.meta.get("published") or page.meta.get("reviewed")
    return day.date() if isinstance(day, datetime) else day if isinstance(day, date) else None


def _shown(config):
    return (lambda level: level.is_in_serve()) if config.extra["serving"] else (lambda level: level.is_included())


@event_priority(0)
def on_page_context(context, page, config, nav):
    if page.is_homepage:
        page.meta["hide"] = sorted({*page.meta.get("hide", []), "navigation", "toc", "path", "footer"})
    elif page.meta.get("template") == "articles.html":
        page.meta["hide"] = sorted({*page.meta.get("hide", []), "navigation", "toc", "footer"})
    return context
