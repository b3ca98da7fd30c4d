"""What the hooks know of a page from its file: its front matter, whether it is a draft, and its rank among the articles."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File
from mkdocs.utils import meta

# The order of categories in navigation and lists; an article's `order` and path decide within one.
CATEGORIES = ("guide", "basics", "practice", "hardware", "models", "news")


def front_matter(path: str | Path) -> dict[str, Any]:
    """The front matter of a page as its author wrote it; empty where it cannot be read, which MkDocs and the check report."""
    return _front_matter(str(path), Path(path).stat().st_mtime_ns)


@functools.lru_cache(maxsize=1024)
def _front_matter(path: str, changed: int) -> dict[str, Any]:
    return meta.get_data(Path(path).read_text(encoding="utf-8-sig"))[1]


def is_draft(path: str | Path) -> bool:
    return front_matter(path).get("draft") is True


def rank(file: File) -> tuple[int, int, str]:
    """Where an article stands in navigation and lists, the same in each language."""
    known = front_matter(file.abs_src_path)
    category, order = known.get("category"), known.get("order")
    place = CATEGORIES.index(category) if category in CATEGORIES else len(CATEGORIES)
    return place, order if isinstance(order, int) else 1000, file.src_uri
