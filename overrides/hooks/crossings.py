"""Links from what the macros write to other pages: `article:accuracy.md#gpus` becomes the way from the page that shows it.

MkDocs resolves links in Markdown only, and a table of a post stands on the post's page and in the lists of the blog,
each with a way of its own. A link to a page that the site does not have becomes plain text.
"""

from __future__ import annotations

import re

from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.utils import get_relative_url

_LINK = re.compile(r'<a href="article:(?P<name>[\w/.-]+\.md)(?P<anchor>#[\w-]+)?"(?P<rest>[^>]*)>(?P<words>[^<]*)</a>')
_addresses: dict[str, str] = {}


@event_priority(0)
def on_env(env, config, files: Files):
    _addresses.clear()
    _addresses.update((file.src_uri, file.url) for file in files.documentation_pages() if file.inclusion.is_included())
    return env


@event_priority(0)
def on_post_page(output: str, page, config) -> str:
    return _LINK.sub(lambda link: _way(link, page.url), output)


def _way(link: re.Match[str], here: str) -> str:
    address = _addresses.get(link["name"])
    if address is None:
        return link["words"]
    return f'<a href="{get_relative_url(address, here)}{link["anchor"] or ""}"{link["rest"]}>{link["words"]}</a>'
