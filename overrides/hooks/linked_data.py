"""What search engines and assistants read of a page: JSON-LD by schema.org, and what a shared link shows.

Only what stands on the page itself is said: its title, its days, its questions and answers, and its place in the site.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

from markupsafe import Markup
from mkdocs.plugins import event_priority
from mkdocs.structure.pages import Page

PICTURE = "assets/images/share.png"
PICTURE_SIZE = (1200, 630)
LOCALES = {"de": "de_DE", "en": "en_US", "tr": "tr_TR"}

_FAQ = re.compile(r'<h2[^>]*\bid="faq"[^>]*>.*?</h2>(?P<answers>.*?)(?=<h2\b|\Z)', re.DOTALL)
_QUESTION = re.compile(r"<h3[^>]*>(?P<question>.*?)</h3>(?P<answer>.*?)(?=<h3\b|\Z)", re.DOTALL)
# Icons say nothing that their words do not say; that a page is no advice is said of the page, not of its last answer.
_LEFT_OUT = re.compile(r'<a class="headerlink".*?</a>|<svg\b.*?</svg>|<p class="vg-(?:not-advice|units)">.*?</p>', re.DOTALL)
_NO_TEXT = re.compile(r"<(?:figure|table|pre)\b")
_BETWEEN = re.compile(r"<(?:/?(?:p|li|ul|ol|div|dl|dt|dd|blockquote|h[1-6])\b|br\b)[^>]*>")
_TAG = re.compile(r"<[^>]+>")


def plain(content: str) -> str:
    """HTML as one line of text, as a reader sees it."""
    text = html.unescape(_TAG.sub("", _BETWEEN.sub(" ", _LEFT_OUT.sub("", content))))
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def questions(content: str) -> list[tuple[str, str]]:
    """The questions of the section with the anchor `faq`, with those answers that are text: half an answer, without its table, is none."""
    section = _FAQ.search(content)
    pairs = _QUESTION.finditer(section["answers"]) if section else ()
    return [(plain(pair["question"]), plain(pair["answer"])) for pair in pairs if not _NO_TEXT.search(pair["answer"])]


@event_priority(0)
def on_page_context(context, page: Page, config, nav):
    if page.canonical_url:  # a preview has none, and nothing to say to search engines
        context["share"] = _share(page, config)
        context["linked_data"] = [_script(data) for data in _linked_data(page, config, nav)]
    return context


def _share(page: Page, config) -> dict[str, Any]:
    """What a link to the page shows in a chat or a network."""
    locale = config.extra["locale"]
    return {
        "title": _title(page, config),
        "description": page.meta.get("description") or config.site_description,
        "kind": "article" if _is_article(page) else "website",
        "picture": config.extra["site_address"] + PICTURE,
        "size": PICTURE_SIZE,
        "locale": LOCALES[locale],
        "others": [code for key, code in LOCALES.items() if key != locale],
    }


def _title(page: Page, config) -> str:
    return str(page.meta.get("title") or page.title or config.site_name)


def _is_article(page: Page) -> bool:
    about = getattr(page, "furniture", None)
    return about is not None and bool(about.category or page.file.src_uri.startswith("blog/posts/"))


def _linked_data(page: Page, config, nav) -> list[dict[str, Any]]:
    found = []
    if page.is_homepage:
        found.append({
            "@type": "WebSite", "name": config.site_name, "url": page.canonical_url,
            "description": config.site_description, "inLanguage": config.extra["locale"], "publisher": _publisher(config),
        })
    elif trail := _trail(page, config, nav):
        places = [
            {"@type": "ListItem", "position": number, "name": name, "item": {"@type": "WebPage", "@id": address}}
            for number, (name, address) in enumerate(trail, 1)
        ]
        found.append({"@type": "BreadcrumbList", "itemListElement": places})
    if _is_article(page):
        found.append(_article(page, config))
        if pairs := questions(page.furniture.body):
            entities = [
                {"@type": "Question", "name": question, "acceptedAnswer": {"@type": "Answer", "text": answer}}
                for question, answer in pairs
            ]
            found.append({"@type": "FAQPage", "inLanguage": config.extra["locale"], "mainEntity": entities})
    return [{"@context": "https://schema.org", **data} for data in found]


def _publisher(config) -> dict[str, Any]:
    logo = config.extra["site_address"] + "assets/images/logo.png"
    return {
        "@type": "Organization", "name": config.site_name, "url": config.extra["site_address"],
        "logo": {"@type": "ImageObject", "url": logo},
    }


def _article(page: Page, config) -> dict[str, Any]:
    about, words = page.furniture, config.extra["words"]
    is_post = page.file.src_uri.startswith("blog/posts/")
    data = {
        "@type": "BlogPosting" if is_post else "Article",
        "headline": _title(page, config),
        "description": page.meta.get("description"),
        "inLanguage": config.extra["locale"],
        "url": page.canonical_url,
        "mainEntityOfPage": page.canonical_url,
        "image": config.extra["site_address"] + PICTURE,
        "datePublished": about.published.isoformat() if about.published else None,
        "dateModified": about.reviewed.isoformat() if about.reviewed else None,
        "author": {"@type": "Organization", "name": words("article.team"), "url": config.extra["site_address"]},
        "publisher": _publisher(config),
    }
    return {name: value for name, value in data.items() if value}


def _trail(page: Page, config, nav) -> list[tuple[str, str]]:
    """The path to the page as the breadcrumb shows it, each place with its address, the page itself last."""
    trail = [(config.extra["words"]("nav.home"), nav.homepage.canonical_url)] if nav.homepage else []
    for place in reversed(page.ancestors):
        first = place if getattr(place, "url", None) else next(iter(place.children or ()), None)
        if first is not None and first is not page and getattr(first, "canonical_url", None):
            if trail[-1:] != [(str(place.title), first.canonical_url)]:  # the blog is a section and a page of it
                trail.append((str(place.title), first.canonical_url))
    return [*trail, (_title(page, config), page.canonical_url)]


def _script(data: dict[str, Any]) -> Markup:
    # `<` could end the script element.
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return Markup('<script type="application/ld+json">{}</script>').format(Markup(text))
