"""Whether the links of a page lead to a page, heading or file that exists, and whether it loads nothing from other sites."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from macros.findings import Finding, suggest
from macros.pages import Link, Page

# Pages that the site's plugins write; they have no file.
_GENERATED = ("tags.md",)
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
# What a browser fetches by itself; a plain link it follows only when the reader does.
_LOADING = re.compile(
    r"<(?!a\b)[a-z]\w*\b[^>]*?\b(?:src|srcset|href|data|poster)\s*=\s*[\"']?\s*((?:https?:)?//[^\s\"'>]+)", re.IGNORECASE
)
_SCRIPT = re.compile(r"<script\b|<[a-z][^>]*\son[a-z]+\s*=", re.IGNORECASE)
_KEEP = "; keep a copy in docs/assets, so that nobody watches the readers"


Articles = Mapping[str, Mapping[str, Page]]


def findings(page: Page, articles: Articles, root: Path, written: Mapping[str, Collection[str]] = {}) -> Iterator[Finding]:
    """Links without a target, and what another site would learn of the reader; addresses elsewhere are not visited.

    `written` are the anchors that words of the vocabulary write into a page, by the page's name.
    """
    for match in _LOADING.finditer(page.code_free):
        yield Finding(page.path, page.line_at(match.start()), f"loads {match[1]!r} from another site{_KEEP}")
    for match in _SCRIPT.finditer(page.code_free):
        yield Finding(page.path, page.line_at(match.start()), "scripts stand in docs/assets/javascripts, not in a page")
    for link in page.links:
        if "{{" in link.target or "{%" in link.target:
            continue
        if _ELSEWHERE.match(link.target):
            if link.image:
                yield Finding(page.path, link.line, f"loads {link.target!r} from another site{_KEEP}")
            elif not link.target.startswith(("https://", "mailto:")):
                yield Finding(page.path, link.line, f"link to {link.target!r}: expected https://")
        elif (says := _wrong(link, page, articles, root, written)) is not None:
            yield Finding(page.path, link.line, f"link to {link.target!r}: {says}")


def _wrong(
    link: Link, page: Page, articles: Articles, root: Path, written: Mapping[str, Collection[str]]
) -> str | None:
    target, _, anchor = link.target.partition("#")
    if target.startswith("/"):
        return "expected a path relative to this page, so that the site works below any address"
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), target)) if target else page.name
    if not name.endswith(".md"):
        # The site copies docs/assets once for all languages.
        below = f"docs/{page.language}/{name}"
        return None if (root / below).exists() or (root / "docs" / name).exists() else "there is no such file"
    if name in _GENERATED:
        return None
    other = articles.get(name, {}).get(page.language)
    if other is None:
        return f"there is no docs/{page.language}/{name}{suggest(name, articles)}"
    anchors = _anchors(other) | set(written.get(name, ()))
    if anchor and anchor not in anchors:
        return f"{other.path} has no anchor {anchor!r}{suggest(anchor, anchors)}"
    return None


def _anchors(page: Page) -> set[str]:
    """Anchors of headings, and any id that the page gives to something else."""
    ids = re.findall(r"\{:?[^{}\n]*#([\w-]+)[^{}\n]*\}|\bid=\"([\w-]+)\"", page.code_free)
    return {heading.anchor for heading in page.headings if heading.anchor} | {one or other for one, other in ids}
