"""Publishing previews: the whole way with a GitHub of our own, a real Git repository, and a stranger's names in the event."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import publishing.__main__ as command
from publishing import comment, github, store
from tests.test_artifact import PAGE
from tests.test_changes import EMPTY, HOSTILE

SHA, FORK = "a1" * 20, 77
BRANCH = "$(touch${IFS}pwned)`touch pwned`"
REPORT = {**EMPTY, "figures": [{"page": "x/", "section": "s", "row": "r", "column": "c", "call": "", "old": "1", "new": "2",
                                "percent": 100.0, "texts": {"en": ["1 GB", "2 GB"]}}]}  # fmt: skip


def pull(number: int, sha: str = SHA, repository: int | None = FORK) -> dict[str, Any]:
    return {"number": number, "head": {"sha": sha, "ref": BRANCH, "repo": None if repository is None else {"id": repository}}}


class Server(ThreadingHTTPServer):
    """What GitHub answers, and what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.pulls = [pull(3, "00" * 20), pull(12)]
        self.comments: list[dict[str, Any]] = []
        self.site, self.previews = "https://guide.example/", "https://previews.example/store/"
        self.archive = zipped({"index.html": PAGE.format("New."), comment.REPORT: json.dumps(REPORT)})
        self.size: int | None = None
        self.asked: list[tuple[str, str, str | None]] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def answer(self) -> None:
        self.server.asked.append((self.command, self.path, self.headers["Authorization"]))
        split = urlsplit(self.path)
        page, path = int(parse_qs(split.query).get("page", ["1"])[0]), split.path.removeprefix("/repos/")
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "null")
        match (self.command, path.removeprefix("owner/guide")):
            case ("GET", "/pulls"):
                self.json(self.server.pulls[100 * (page - 1) : 100 * page])
            case ("GET", "/pages"):
                self.json({"html_url": self.server.site.rstrip("/")})
            case ("GET", "other/store/pages"):
                self.json({"html_url": self.server.previews})
            case ("GET", "/actions/runs/99/artifacts"):
                size = len(self.server.archive) if self.server.size is None else self.server.size
                self.json({"artifacts": [{"id": 5, "name": "preview", "expired": False, "size_in_bytes": size}]})
            case ("GET", "/actions/artifacts/5/zip"):
                self.send_response(302)
                self.send_header("Location", f"http://localhost:{self.server.server_port}/blob")
                self.end_headers()
            case ("GET", "/blob"):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(self.server.archive)
            case ("GET", "/issues/12/comments"):
                self.json(self.server.comments)
            case ("POST", "/issues/12/comments"):
                self.server.comments.append({"id": len(self.server.comments), "user": {"type": "Bot"}, **body})
                self.json({}, 201)
            case ("PATCH", place):
                self.server.comments[int(place.rpartition("/")[2])] |= body
                self.json({})
            case _:
                self.json({"message": "Not Found"}, 404)

    do_GET = do_POST = do_PATCH = answer

    def json(self, value: Any, code: int = 200) -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def zipped(files: Mapping[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    threading.Thread(target=started.serve_forever, args=(0.02,), daemon=True).start()
    yield started
    started.shutdown()
    started.server_close()


@pytest.fixture
def variables(server: Server, tmp_path: Path) -> dict[str, str]:
    """What Actions puts into the environment, with a repository of previews as a folder."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "other" / "store.git")], check=True)
    run = {"id": 99, "head_sha": SHA, "head_branch": BRANCH, "head_repository": {"id": FORK, "full_name": HOSTILE}, "pull_requests": []}
    (tmp_path / "event.json").write_text(json.dumps({"workflow_run": run}), encoding="utf-8")
    return {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_API_URL": server.address, "GITHUB_SERVER_URL": tmp_path.as_uri(),
        "GITHUB_REPOSITORY": "owner/guide", "GITHUB_TOKEN": "token-of-the-run",
        "PREVIEW_REPOSITORY": "other/store", "PREVIEW_TOKEN": "token-of-the-store",
    }  # fmt: skip


def published(variables: Mapping[str, str]) -> dict[str, str]:
    """The files of the branch that serves the previews."""
    repository = f"{variables['GITHUB_SERVER_URL'].removeprefix('file://')}/other/store.git"
    listed = git(repository, "ls-tree", "-r", "--name-only", store.BRANCH).splitlines()
    return {name: git(repository, "show", f"{store.BRANCH}:{name}") for name in listed}


def git(repository: str, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", repository, *arguments], capture_output=True, text=True, check=False)
    return done.stdout


def test_a_preview_is_published_and_the_comment_says_what_moves(server: Server, variables: dict[str, str], tmp_path: Path) -> None:
    call = [sys.executable, "-m", "publishing", "deploy"]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parent.parent), **variables}
    # Without the packages of the project: the machine that has the tokens installs none.
    done = subprocess.run([call[0], "-S", *call[1:]], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout == f"published {SHA} at https://previews.example/store/pr-12/\n"
    files = published(variables)
    assert set(files) == {".nojekyll", "robots.txt", "pr-12/index.html", "pr-12/preview/changes/changes.json"}
    assert "New." in files["pr-12/index.html"] and "Disallow: /" in files["robots.txt"]
    (said,) = server.comments
    assert "(https://previews.example/store/pr-12/)" in said["body"] and "## 1 figure changes" in said["body"]
    assert not [path for path in tmp_path.rglob("pwned*")]
    assert "token" not in git(str(tmp_path / "other" / "store.git"), "log", "--all", "--format=%B%an%ae")


def test_the_token_does_not_travel_to_the_store_of_archives(server: Server, variables: dict[str, str]) -> None:
    assert command.main(["deploy"], variables) == 0
    tokens = {path: token for _, path, token in server.asked}
    assert tokens["/blob"] is None
    assert tokens["/repos/owner/guide/actions/artifacts/5/zip"] == "Bearer token-of-the-run"
    assert tokens["/repos/other/store/pages"] == "Bearer token-of-the-store"


def test_a_second_preview_replaces_the_first_and_its_comment(server: Server, variables: dict[str, str], tmp_path: Path) -> None:
    assert command.main(["deploy"], variables) == 0
    server.archive = zipped({"index.html": PAGE.format("Newer.")})
    assert command.main(["deploy"], variables) == 0
    files = published(variables)
    assert "Newer." in files["pr-12/index.html"] and "pr-12/preview/changes/changes.json" not in files
    assert len(server.comments) == 1 and "cannot be read" in server.comments[0]["body"]
    assert git(str(tmp_path / "other" / "store.git"), "rev-list", "--count", store.BRANCH).strip() == "1"


def test_somebody_elses_comment_is_left_alone(server: Server, variables: dict[str, str]) -> None:
    server.comments.append({"id": 0, "user": {"type": "User"}, "body": f"{comment.MARK} mine"})
    assert command.main(["deploy"], variables) == 0
    assert len(server.comments) == 2 and server.comments[0]["body"].endswith(" mine")


@pytest.mark.parametrize(
    "pulls",
    [
        [],
        [pull(12, "00" * 20)],  # there are newer commits
        [pull(13, repository=78)],  # the same commit, but from another fork, whose run this is not
        [pull(14, repository=None)],  # the fork is gone
        [pull(12), pull(13)],
    ],
)
def test_without_exactly_one_pull_request_nothing_is_published(server: Server, variables: dict[str, str], pulls: list[Any]) -> None:
    server.pulls = pulls
    assert command.main(["deploy"], variables) == 0
    assert published(variables) == {} and server.comments == []
    assert not any("artifacts" in path for _, path, _ in server.asked)


def test_the_pull_request_is_found_on_any_page_of_the_list(server: Server) -> None:
    server.pulls = [pull(number, "00" * 20) for number in range(20, 270)] + [pull(12)]
    assert github.GitHub("owner/guide", "t", server.address).pull_of(SHA, FORK) == 12


def test_a_hostile_artifact_is_refused_and_the_comment_says_why(server: Server, variables: dict[str, str]) -> None:
    server.archive = zipped({"index.html": PAGE.format('<script src="https://evil.example/@everyone"></script>'), "_headers": ""})
    assert command.main(["deploy"], variables) == 1
    assert published(variables) == {}
    (said,) = server.comments
    assert said["body"].startswith(f"{comment.MARK}\n**No preview** of {SHA[:12]}") and "headers" in said["body"]
    server.archive = zipped({"index.html": PAGE.format('<script src="https://evil.example/@everyone"></script>')})
    assert command.main(["deploy"], variables) == 1
    assert "evil.example" in server.comments[0]["body"]
    assert "@everyone" not in server.comments[0]["body"] and "https://" not in server.comments[0]["body"]


def test_a_huge_artifact_is_not_even_fetched(server: Server, variables: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    server.size = github.MOST_ARCHIVE + 1
    assert command.main(["deploy"], variables) == 1
    assert "100000001 bytes, at most 100000000 are fetched" in capsys.readouterr().err
    assert not any(path.endswith("/zip") for _, path, _ in server.asked)


def test_previews_beside_the_site_are_refused(server: Server, variables: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """Pages of one owner share a host, and with it what scripts store."""
    server.site, server.previews = "https://owner.github.example/guide/", "https://Owner.github.example/store/"
    assert command.main(["deploy"], variables) == 1
    assert "would share it with the site" in capsys.readouterr().err and published(variables) == {}


def test_closed_previews_are_removed(server: Server, variables: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("x", encoding="utf-8")
    remote = f"{variables['GITHUB_SERVER_URL']}/other/store.git"
    for number in (3, 7, 12):
        store.put(remote, "", number, tmp_path / "site")
    assert command.main(["clean"], variables) == 0
    assert capsys.readouterr().out == "removed the previews of 7\n"
    assert {name.partition("/")[0] for name in published(variables)} == {"pr-3", "pr-12", "robots.txt", ".nojekyll"}
    assert command.main(["clean"], variables) == 0
    assert capsys.readouterr().out == "removed the previews of none\n"


def test_two_that_push_at_once_both_arrive(variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one preview is being committed, another is pushed; the first starts again from what that one left."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("x", encoding="utf-8")
    remote = f"{variables['GITHUB_SERVER_URL']}/other/store.git"
    real, others = store._git, [2]

    def slow(tree: Path, *arguments: str, token: str = "") -> str:
        if arguments[0] == "push" and others:
            store.put(remote, "", others.pop(), tmp_path / "site")
        return real(tree, *arguments, token=token)

    monkeypatch.setattr(store, "_git", slow)
    store.put(remote, "", 1, tmp_path / "site")
    assert {"pr-1/index.html", "pr-2/index.html"} <= set(published(variables))


def test_the_tokens_stand_in_no_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(command: list[str], env: dict[str, str], **_: Any) -> subprocess.CompletedProcess[str]:
        calls.append((command, env))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(store.subprocess, "run", run)
    monkeypatch.setenv("GITHUB_TOKEN", "token-of-the-run")
    store.put("https://host.example/other/store.git", "token-of-the-store", 1, tmp_path)
    pushes = [env for command, env in calls if command[1] == "push"]
    assert len(pushes) == 1 and pushes[0]["GIT_CONFIG_KEY_0"] == "http.extraHeader"
    assert not [command for command, _ in calls if "token" in " ".join(command)]
    assert not [env for _, env in calls if "GITHUB_TOKEN" in env]


@pytest.mark.parametrize(
    "report",
    [
        "", "[]", "{}", "null", '"x"', "[" * 100_000, '{"flips": 5}', json.dumps({**EMPTY, "figures": [1]}), json.dumps({**EMPTY, "base": 1}),
        json.dumps({**EMPTY, "figures": [{**REPORT["figures"][0], "percent": "x"}]}), json.dumps({**EMPTY, "code": [{"file": 1}]}),
        json.dumps({**EMPTY, "figures": [{**REPORT["figures"][0], "texts": {}}]}), json.dumps({**EMPTY, "pages": []}),
    ],
)  # fmt: skip
def test_whatever_the_report_is_there_is_a_comment(report: str, tmp_path: Path) -> None:
    file = tmp_path / comment.REPORT
    file.parent.mkdir(parents=True)
    file.write_text(report, encoding="utf-8")
    text = comment.published("https://previews.example/pr-1/", SHA, tmp_path)
    assert text.startswith(f"{comment.MARK}\n**[Preview](https://previews.example/pr-1/)**") and len(text) <= comment.MOST


def test_a_comment_is_never_longer_than_github_takes(tmp_path: Path) -> None:
    file = tmp_path / comment.REPORT
    file.parent.mkdir(parents=True)
    long = {**REPORT["figures"][0], "row": "r" * 500}
    file.write_text(json.dumps({**EMPTY, "flips": [long] * 4000, "figures": [long] * 4000}), encoding="utf-8")
    text = comment.published("https://previews.example/pr-1/", SHA, tmp_path)
    assert 30_000 < len(text) <= 65_000 and "⚠ 4000 verdicts flip" in text
    assert text.rstrip().endswith("the rest is on the page of the preview.")


def test_wrong_calls_and_a_repository_without_previews(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([], {}) == 2
    assert command.main(["deploy"], {"PREVIEW_REPOSITORY": "", "PREVIEW_TOKEN": ""}) == 0
    assert "no previews are set up here" in capsys.readouterr().out


def test_the_address_of_the_site_is_what_pages_says(server: Server, variables: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["address"], variables) == 0
    assert capsys.readouterr().out == "https://guide.example/\n"
    assert command.main(["address"], {**variables, "GITHUB_REPOSITORY": "owner/nothing"}) == 1
    assert "GET /pages" in capsys.readouterr().err
