"""What a page, picture or style sheet of a preview must not do: load from other hosts, or be found by search engines.

Two nets, because neither is tight alone. The page must begin with a Content-Security-Policy under which a browser loads
nothing foreign, however a script asks for it. And what stands in the page may not name anything foreign to load.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

# Attributes whose address a browser fetches, runs or sends to by itself. A link is followed only by a reader.
_LOADS = {
    "script": "src href xlink:href", "iframe": "src", "frame": "src", "embed": "src", "object": "data", "img": "src srcset",
    "source": "src srcset", "video": "src poster", "audio": "src", "track": "src", "input": "src formaction", "base": "href",
    "form": "action", "button": "formaction", "body": "background", "use": "href xlink:href", "image": "href xlink:href",
    "feimage": "href xlink:href",
}  # fmt: skip
# Relations of <link> that only name an address.
_ONLY_NAMES = {"canonical", "alternate", "next", "prev", "license", "author", "edit", "help", "me"}
_HOST = re.compile(r"[a-z][a-z0-9+.-]*:|[/\\]{2}", re.IGNORECASE)
_OWN = re.compile(r"data:image/|about:blank$", re.IGNORECASE)
_IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?\s*([^\"')\s;]+)", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x20]")

# Nothing may stand before the policy: a browser that has begun the body takes no policy any more.
_BEGINNING = re.compile(
    r"\s*<!doctype html>\s*<html(?: [a-z]+=\"[\w -]*\")*>\s*<head>\s*(?:<meta charset=\"utf-8\">\s*)?"
    r"<meta http-equiv=\"Content-Security-Policy\" content=\"([^\"<>&]*)\">",
    re.IGNORECASE,
)
_DIRECTIVES = {
    "default-src": {"'none'"}, "style-src": {"'self'", "'unsafe-inline'"}, "img-src": {"'self'", "data:"},
    "script-src": {"'self'"}, "font-src": {"'self'"}, "connect-src": {"'self'"}, "worker-src": {"'self'"},
    "manifest-src": {"'self'"}, "base-uri": {"'self'", "'none'"}, "form-action": {"'self'", "'none'"},
}  # fmt: skip
_HASH = re.compile(r"'sha256-[A-Za-z0-9+/]{43}='")


def findings(suffix: str, text: str) -> Iterator[str]:
    """What is wrong with a file of that kind, as what the file does."""
    if suffix == ".css":
        yield from _loading(_addresses(text))
    if suffix in (".html", ".svg", ".xml", ".xsl"):
        reader = _Reader()
        reader.feed(text)
        reader.close()
        yield from _loading(reader.found)
        if suffix == ".html":
            yield from _policy(text)
            if not reader.hidden:
                yield "may be found by search engines; every page of a preview says noindex"


def _loading(addresses: list[str]) -> Iterator[str]:
    for address in dict.fromkeys(addresses):
        yield f"loads {address[:100]!r}; the pages load nothing from other hosts"


def _policy(text: str) -> Iterator[str]:
    beginning = _BEGINNING.match(text)
    if beginning is None:
        yield "does not begin with a Content-Security-Policy"
        return
    given = [part.split() for part in beginning[1].split(";") if part.strip()]
    for name in ("default-src", "base-uri", "form-action"):
        if name not in [directive for directive, *_ in given]:
            yield f"has a Content-Security-Policy without {name}"
    for name, *values in given:
        for value in values:
            if value not in _DIRECTIVES.get(name, ()) and not (name == "script-src" and _HASH.fullmatch(value)):
                yield f"has a Content-Security-Policy that allows {name[:100]!r} {value[:100]!r}"


def foreign(address: str) -> bool:
    """Whether an address leads to another host, or is a script itself."""
    # Browsers drop tabs, line breaks and leading control characters before they read an address.
    plain = _CONTROL.sub("", address)
    return bool(_HOST.match(plain)) and not _OWN.match(plain)


def _addresses(style: str) -> list[str]:
    return [address for address in _IN_STYLE.findall(style) if foreign(address)]


class _Reader(HTMLParser):
    """Collects what a page would load from elsewhere, and whether it is closed to search engines."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.hidden = False
        self.in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in reversed(attributes)}  # of a repeated one the first holds
        wanted = _LOADS.get(tag, "").split()
        if tag == "link" and not set(known.get("rel", "").lower().split()) <= _ONLY_NAMES:
            wanted.append("href")
        for name in wanted:
            value = known.get(name, "")
            self.found += [address for address in (value.split(",") if name == "srcset" else [value]) if foreign(address)]
        if tag == "meta" and known.get("http-equiv", "").lower() == "refresh":
            address = known.get("content", "").partition("=")[2].strip(" '\"")
            self.found += [address] if foreign(address) else []
        if tag == "meta" and known.get("name", "").lower() == "robots":
            self.hidden = self.hidden or "noindex" in known.get("content", "")
        if "srcdoc" in known:
            self.found.append(f"a page within <{tag}>")
        self.found += _addresses(known.get("style", ""))
        self.in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.found += _addresses(data)
