"""The few questions that previews ask GitHub: which pull request, which archive, which address, and one comment."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

# An archive holds less than the files in it; whatever is longer was not made by our build.
MOST_ARCHIVE = 100_000_000
_PAGE = 100
_SECONDS = 60


class GitHubError(Exception):
    """An answer that GitHub refused to give, with what was asked."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Hands a redirect back: the token must not travel to the host that stores archives."""

    def redirect_request(self, *arguments: Any) -> None:
        return None


@dataclass(frozen=True)
class GitHub:
    """One repository through the REST API."""

    repository: str
    token: str
    api: str = "https://api.github.com"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(f"{self.api}/repos/{self.repository}{path}", method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Accept", "application/vnd.github+json")
        request.add_header("X-GitHub-Api-Version", "2022-11-28")
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        return urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS)

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        try:
            with self._ask(method, path, body) as answer:
                return json.load(answer)
        except urllib.error.URLError as error:
            raise GitHubError(f"{method} {path}: {error}") from None

    def _all(self, path: str) -> Iterator[dict[str, Any]]:
        number = 1
        while True:
            listed = self._json("GET", f"{path}{'&' if '?' in path else '?'}per_page={_PAGE}&page={number}")
            yield from listed
            if len(listed) < _PAGE:
                return
            number += 1

    def open_pulls(self) -> list[dict[str, Any]]:
        """Every open pull request."""
        return list(self._all("/pulls?state=open"))

    def pull_of(self, commit: str, repository_id: int) -> int | None:
        """The number of the one open pull request whose last commit this is, in the repository that it comes from.

        The event names none for forks, and what the artifact or the branch's name say a stranger has chosen.
        """
        found = [
            pull["number"]
            for pull in self.open_pulls()
            if pull["head"]["sha"] == commit and (pull["head"]["repo"] or {}).get("id") == repository_id
        ]
        return found[0] if len(found) == 1 else None

    def pages_address(self) -> str:
        """Where GitHub Pages serves this repository; ends with a slash."""
        return str(self._json("GET", "/pages")["html_url"]).rstrip("/") + "/"

    def download_artifact(self, run: int, name: str, file: Path) -> None:
        """Write the archive that a run has uploaded under a name."""
        listed = self._json("GET", f"/actions/runs/{run}/artifacts?per_page={_PAGE}")["artifacts"]
        wanted = [artifact for artifact in listed if artifact["name"] == name and not artifact["expired"]]
        if len(wanted) != 1:
            raise GitHubError(f"run {run} has {len(wanted)} artifacts named {name!r}, expected one")
        if wanted[0]["size_in_bytes"] > MOST_ARCHIVE:
            raise GitHubError(f"the artifact has {wanted[0]['size_in_bytes']} bytes, at most {MOST_ARCHIVE} are fetched")
        path = f"/actions/artifacts/{wanted[0]['id']}/zip"
        try:
            self._ask("GET", path).close()
        except urllib.error.HTTPError as answer:
            if answer.code != 302:
                raise GitHubError(f"GET {path}: {answer}") from None
            place = answer.headers["Location"]
        else:
            raise GitHubError(f"GET {path}: expected the address of the archive")
        with urllib.request.urlopen(place, timeout=_SECONDS) as archive:
            content = archive.read(MOST_ARCHIVE + 1)
        if len(content) > MOST_ARCHIVE:
            raise GitHubError(f"the artifact has more than {MOST_ARCHIVE} bytes")
        file.write_bytes(content)

    def comment(self, pull: int, mark: str, text: str) -> None:
        """Write a comment, or rewrite the one of ours that begins with the mark."""
        for comment in self._all(f"/issues/{pull}/comments"):
            if comment["body"].startswith(mark) and comment["user"]["type"] == "Bot":
                self._json("PATCH", f"/issues/comments/{comment['id']}", {"body": text})
                return
        self._json("POST", f"/issues/{pull}/comments", {"body": text})


def host(address: str) -> str:
    """The host of an address, by which browsers tell origins apart."""
    return (urlsplit(address).hostname or "").lower()
