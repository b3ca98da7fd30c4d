"""One `mkdocs build` or `mkdocs serve` for all languages: each is built in turn, with its own search, blog, feed and tags.

The build that MkDocs starts becomes the build of the source language. When it is done, the hook loads the
configuration again for each other language and builds that too, and last it writes what belongs to no
language: the root page, the 404 page, the sitemap index, robots.txt and the headers for hosts that send them.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.utils import clean_directory, get_relative_url
from site_pages import front_matter, is_draft
from site_words import NAMES, SOURCE, WORDS_PER_MINUTE, Words, catalogue, macros_of

# How the blog writes days; the same patterns as in macros/language.py.
_DATES = {"de": "d.\u00a0MMMM y", "en": "d\u00a0MMMM y", "tr": "d\u00a0MMMM y"}

# What decomposing does not turn into base letters, or would turn into the wrong ones in German.
_LETTERS = str.maketrans({"ı": "i", "İ": "i", "ß": "ss", "ä": "ae", "ö": "oe", "ü": "ue", "Ä": "ae", "Ö": "oe", "Ü": "ue"})


@dataclass
class _Run:
    """What the builds of one command share."""

    command: str = "build"
    inner: str | None = None
    docs: Path = Path()
    site: Path = Path()
    address: str = "/"
    pages: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """What each language has to read, for those that list the whole site."""


_run = _Run()


def on_startup(command: str, dirty: bool) -> None:
    if _run.inner is None:
        _run.command = command


@event_priority(100)
def on_config(config):
    locale = _run.inner or SOURCE
    if _run.inner is None:
        _forget_code()
        _run.docs = Path(config.docs_dir)
        _run.site = Path(config.site_dir)
        _run.address = config.site_url.rstrip("/") + "/"
        clean_directory(str(_run.site))
    words = Words(locale)
    config.extra["locale"] = locale
    config.extra["words"] = words
    config.extra["site_address"] = _run.address
    config.extra["serving"] = _run.command == "serve"
    config.extra["preview"] = _preview()
    # True shows the theme's language menu without its head links, which would call each page's translation the home page.
    config.extra["alternate"] = True
    config.theme["language"] = locale
    config.docs_dir = str(_run.docs / locale)
    config.site_dir = str(_run.site / locale)
    config.site_url = f"{_run.address}{locale}/"
    config.site_description = words("site.description")
    config.copyright = words("site.promise")
    for palette in config.theme["palette"]:
        palette["toggle"] = {**palette["toggle"], "name": words(palette["toggle"]["name"])}
    if repository := config.extra["repository"].rstrip("/"):
        config.edit_uri_template = f"{repository}/edit/main/docs/{locale}/{{path}}"
    blog = config.plugins["material/blog"].config
    blog.post_date_format = _DATES[locale]
    blog.post_readtime_words_per_minute = WORDS_PER_MINUTE[locale]
    blog.categories_slugify = _slug
    config.mdx_configs["toc"]["permalink_title"] = words("page.permalink")
    config.plugins["rss"].config.feed_title = f"{config.site_name}: {words('nav.blog')} ({NAMES[locale]})"
    config.plugins["rss"].config.image = f"{_run.address}assets/images/logo.png"
    if config.extra["preview"]:
        config.plugins["rss"].config.enabled = False
    return config


def _slug(title: str, separator: str) -> str:
    """An address of ASCII letters: ı and ß have no base letter that decomposing finds."""
    plain = unicodedata.normalize("NFKD", title.translate(_LETTERS)).encode("ascii", "ignore").decode("ascii")
    return re.sub(r"[^a-z0-9]+", separator, plain.lower()).strip(separator)


def _forget_code() -> None:
    """Drop the imported package of the macros: MkDocs rebuilds after an edit, but Python would run the old code."""
    for name in [name for name in sys.modules if name == "macros" or name.startswith("macros.")]:
        del sys.modules[name]


def _preview() -> dict[str, str] | None:
    """The pull request and commit that `make preview` builds, or None for the real site."""
    if not os.environ.get("PREVIEW_PR"):
        return None
    return {"pr": os.environ["PREVIEW_PR"], "commit": os.environ.get("PREVIEW_COMMIT", "")[:12]}


@event_priority(50)
def on_files(files: Files, config) -> Files:
    # Style sheets, scripts and pictures lie beside the languages and are the same for all.
    for path in sorted((_run.docs / "assets").rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            name = path.relative_to(_run.docs).as_posix()
            files.append(File(name, str(_run.docs), config.site_dir, config.use_directory_urls))
    # The theme would publish every file of its folder that is no template and no Python.
    for file in list(files):
        if file.src_uri.startswith(("messages/", "root/")):
            files.remove(file)
    if files.get_file_from_path("tags.md") is None and _has_tags(config.extra["locale"]):
        title = config.extra["words"]("nav.tags")
        text = f"---\ntitle: {title}\nhide: [navigation, toc]\n---\n\n<!-- material/tags -->\n"
        files.append(File.generated(config, "tags.md", content=text))
    return files


@event_priority(50)
def on_page_context(context, page, config, nav):
    context["languages"] = _languages(page, config)
    context["translations"] = _translations(page, config)
    if config.extra["preview"]:
        page.canonical_url = None
    return context


@event_priority(50)
def on_env(env, config, files):
    env.globals["translations_of"] = functools.partial(_translations, config=config)
    env.globals["words"] = config.extra["words"]
    _run.pages[config.extra["locale"]] = [
        {"title": str(page.meta["title"]), "description": str(page.meta["description"]), "address": page.canonical_url}
        for page in (file.page for file in files.documentation_pages() if file.inclusion.is_included() and file.page)
        if page.canonical_url and page.meta.get("title") and page.meta.get("description")
    ]
    return env


def _languages(page, config) -> list[dict[str, object]]:
    """The same page in each language: `exact` tells whether it is there, else the link goes to the nearest page that is."""
    entries = []
    for locale, name in NAMES.items():
        own = locale == config.extra["locale"]
        exact = own or _published(locale, page.file)
        target = page.url if exact else _nearest(page, locale)
        link = get_relative_url(f"{locale}/{target}", f"{config.extra['locale']}/{page.url}")
        entries.append({
            "locale": locale, "name": name, "own": own, "exact": exact,
            "link": link or "./", "address": f"{_run.address}{locale}/{target}",
        })
    return entries


def _translations(page, config) -> list[dict[str, object]]:
    """For search engines: the languages in which this very page exists, if it is more than one."""
    exact = [entry for entry in _languages(page, config) if entry["exact"]]
    return exact if len(exact) > 1 else []


def _published(locale: str, file: File) -> bool:
    """Whether a page has its partner in another language: the same path, and not held back as a draft."""
    if file.src_uri == "tags.md":
        return _has_tags(locale)
    path = _run.docs / locale / file.src_uri
    return path.is_file() and (_run.command == "serve" or not is_draft(path))


def _has_tags(locale: str) -> bool:
    """Whether a list of tags in that language would name any page."""
    return any(front_matter(path).get("tags") and not is_draft(path) for path in (_run.docs / locale).rglob("*.md"))


def _nearest(page, locale: str) -> str:
    """The blog for its archive and category pages, whose addresses differ by language; the home page for all else."""
    return "blog/" if page.url.startswith("blog/") and (_run.docs / locale / "blog" / "index.md").is_file() else ""


@event_priority(-200)
def on_post_build(config) -> None:
    if _run.inner is not None:
        return
    serving = _run.address if _run.command == "serve" else None
    try:
        for locale in NAMES:
            if locale == SOURCE:
                continue
            _run.inner = locale
            # Not strict: the outer build counts these warnings too, and a first language with a mistake must not hide the next one's.
            inner = load_config(config.config_file_path, strict=False, site_dir=str(_run.site), site_url=_run.address)
            inner.plugins.on_startup(command=_run.command, dirty=False)
            build(inner, serve_url=serving)
    finally:
        _run.inner = None
    _write_root(config)


def _write_root(config) -> None:
    """What belongs to no language."""
    everyone = {locale: catalogue(locale) for locale in NAMES}
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(str(Path(config.config_file_path).parent / "overrides" / "root")), autoescape=True
    )
    preview = config.extra["preview"]
    facts = {
        "names": NAMES, "messages": everyone, "site_name": config.site_name, "preview": preview,
        "pages": _run.pages, "address": _run.address, "path": urlsplit(_run.address).path, "source": SOURCE,
        "data": macros_of("open_data").FOLDER,
    }
    for name in ("index.html", "404.html", "sitemap.xml", "robots.txt", "llms.txt", "_headers"):
        if preview and name in ("sitemap.xml", "llms.txt", "_headers"):
            continue
        (_run.site / name).write_text(env.get_template(name).render(facts), encoding="utf-8")
    target = _run.site / "assets"
    for name in ("stylesheets/root.css", "javascripts/root.js", "images/favicon.svg", "images/logo.png", "images/share.png"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_run.docs / "assets" / name, target / name)
