"""The repository that serves the previews: one folder for each pull request, one commit without a past.

Old previews would otherwise stay in its history for ever. Two runs may push at once; the later one starts again from what the
earlier one has left.
"""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

BRANCH = "gh-pages"
TRIES = 5
_FOLDER = re.compile(r"pr-([1-9][0-9]*)")
_ROBOTS = "User-agent: *\nDisallow: /\n"


class StoreError(Exception):
    """Git could not read or write the repository of the previews."""


def folder_of(pull: int) -> str:
    return f"pr-{pull}"


def put(address: str, token: str, pull: int, site: Path) -> None:
    """Replace the preview of a pull request by the files of a folder."""

    def change(tree: Path) -> None:
        target = tree / folder_of(pull)
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(site, target)

    _change(address, token, f"Preview of pull request {pull}", change)


def keep(address: str, token: str, pulls: Collection[int]) -> list[int]:
    """Remove every preview but these; returns whose were removed."""
    removed: list[int] = []

    def change(tree: Path) -> None:
        removed.clear()
        for folder in sorted(tree.iterdir()):
            found = _FOLDER.fullmatch(folder.name)
            if found and int(found[1]) not in pulls:
                shutil.rmtree(folder)
                removed.append(int(found[1]))

    _change(address, token, "Remove closed previews", change)
    return removed


def _change(address: str, token: str, message: str, change: Callable[[Path], None]) -> None:
    for attempt in range(1, TRIES + 1):
        with tempfile.TemporaryDirectory() as name:
            tree = Path(name)
            known = _fetch(tree, address, token)
            change(tree)
            (tree / "robots.txt").write_text(_ROBOTS, encoding="utf-8")
            (tree / ".nojekyll").write_text("", encoding="utf-8")
            _git(tree, "add", "--all", "--force")
            _git(tree, "commit", "--quiet", "--allow-empty", f"--message={message}")
            # Only if nobody has pushed since: an empty name stands for a branch that does not exist yet.
            lease = f"--force-with-lease=refs/heads/{BRANCH}:{known}"
            try:
                _git(tree, "push", "--quiet", lease, address, f"HEAD:refs/heads/{BRANCH}", token=token)
                return
            except StoreError:
                if attempt == TRIES:
                    raise


def _fetch(tree: Path, address: str, token: str) -> str:
    """Lay the files of the branch into an empty folder with a fresh history; returns its commit, "" if there is none."""
    _git(tree, "init", "--quiet", "--initial-branch=fresh")
    _git(tree, "config", "core.symlinks", "false")
    listed = _git(tree, "ls-remote", address, f"refs/heads/{BRANCH}", token=token)
    if not listed:
        return ""
    _git(tree, "fetch", "--quiet", "--depth=1", address, f"refs/heads/{BRANCH}", token=token)
    _git(tree, "checkout", "--quiet", "FETCH_HEAD", "--", ".")
    return _git(tree, "rev-parse", "FETCH_HEAD")


def _git(tree: Path, *arguments: str, token: str = "") -> str:
    """Run Git without anybody's settings. The token goes by the environment: a command line can be read by others."""
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment |= {"HOME": str(tree), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
    for name in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{name}_NAME": "Previews", f"GIT_{name}_EMAIL": "previews@users.noreply.github.com"}
    if token:
        secret = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        environment |= {
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader", "GIT_CONFIG_VALUE_0": f"Authorization: Basic {secret}",
        }  # fmt: skip
    done = subprocess.run(["git", *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StoreError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.split()[0] if arguments[0] == "ls-remote" and done.stdout else done.stdout.strip()
