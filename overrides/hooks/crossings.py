"""Links from what the macros write to other pages: `article:accuracy.md#gpus` becomes the way from the page that shows it.

MkDocs resolves links in Markdown only, and a table of a post stands on the post's page and in the lists of the blog,
each with a way of its own. A link without words of its own gets the title of the page; one to a page that the site
does not have becomes plain text.
"""

from __future__ import annotations

import html
import re

from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.utils import get_relative_url

_LINK = re.compile(r'<a href="article:(?P<name>[\w/.-]+\.md)(?P<anchor>#[\w-]+)?"(?P<rest>[^>]*)>(?P<words>[^<]*)</a>')
_addresses: dict[str, str] = {}
_titles: dict[str, str] = {}


@event_priority(0)
def on_env(env, config, files: Files):
    _addresses.clear()
    _titles.clear()
    for file in files.documentation_pages():
        if file.inclusion.is_included():
            _addresses[file.src_uri] = file.url
            _titles[file.src_uri] = html.escape(str(file.page.meta.get("title") or file.page.title)) if file.page else ""
    return env


@event_priority(0)
def on_post_page(output: str, page, config) -> str:
    return _LINK.sub(lambda link: _way(link, page.url), output)


def _way(link: re.Match[str], here: str) -> str:
    address = _addresses.get(link["name"])
    if address is None:
        return link["words"]
    return f'<a href="{get_relative_url(address, here)}{link["anchor"] or ""}"{link["rest"]}>{link["words"] or _titles[link["name"]]}</a>'
