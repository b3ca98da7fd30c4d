"""What the workflows call: `python -m publishing deploy | clean` for previews, `address` for the site itself.

Everything it needs comes in the environment, as Actions sets it: nothing of a pull request stands in a command.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from publishing import artifact, comment, store
from publishing.github import GitHub, GitHubError, host

ARTIFACT = "preview"
_UNSET = "no previews are set up here: the secrets PREVIEW_REPOSITORY and PREVIEW_TOKEN are missing"


def deploy(variables: Mapping[str, str]) -> int:
    """Publish the preview that another run has uploaded, and say so. Returns 1 if it is refused."""
    run = json.loads(Path(variables["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))["workflow_run"]
    commit = run["head_sha"]
    github, previews = _repositories(variables)
    pull = github.pull_of(commit, (run["head_repository"] or {}).get("id"))
    if pull is None:
        print(f"nothing to publish: no open pull request ends with {commit}")
        return 0
    place = f"{previews.pages_address()}{store.folder_of(pull)}/"
    if host(place) == host(github.pages_address()):
        print(f"error: previews on {host(place)} would share it with the site, and strangers' scripts its storage", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        archive, site = Path(name) / "archive.zip", Path(name) / "site"
        try:
            github.download_artifact(run["id"], ARTIFACT, archive)
            artifact.unpack(archive, site)
        except artifact.Refused as refused:
            print(f"refused:\n{refused}", file=sys.stderr)
            github.comment(pull, comment.MARK, comment.refused(commit, str(refused)))
            return 1
        store.put(_remote(variables), variables["PREVIEW_TOKEN"], pull, site)
        github.comment(pull, comment.MARK, comment.published(place, commit, site))
    print(f"published {commit} at {place}")
    return 0


def clean(variables: Mapping[str, str]) -> int:
    """Remove the previews of all pull requests that are not open."""
    github, _ = _repositories(variables)
    pulls = {pull["number"] for pull in github.open_pulls()}
    removed = store.keep(_remote(variables), variables["PREVIEW_TOKEN"], pulls)
    print(f"removed the previews of {', '.join(map(str, removed)) or 'none'}")
    return 0


def address(variables: Mapping[str, str]) -> int:
    """Print where Pages serves the site."""
    print(_project(variables).pages_address())
    return 0


def _project(variables: Mapping[str, str]) -> GitHub:
    return GitHub(variables["GITHUB_REPOSITORY"], variables["GITHUB_TOKEN"], variables["GITHUB_API_URL"])


def _repositories(variables: Mapping[str, str]) -> tuple[GitHub, GitHub]:
    """The project's repository, and the one that serves previews."""
    return _project(variables), GitHub(variables["PREVIEW_REPOSITORY"], variables["PREVIEW_TOKEN"], variables["GITHUB_API_URL"])


def _remote(variables: Mapping[str, str]) -> str:
    return f"{variables['GITHUB_SERVER_URL']}/{variables['PREVIEW_REPOSITORY']}.git"


def main(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """Carry out one command. Returns the exit code."""
    commands = {"deploy": deploy, "clean": clean, "address": address}
    if len(arguments) != 1 or arguments[0] not in commands:
        print(f"usage: python -m publishing {' | '.join(commands)}", file=sys.stderr)
        return 2
    if arguments[0] != "address" and not (variables.get("PREVIEW_REPOSITORY") and variables.get("PREVIEW_TOKEN")):
        print(_UNSET)
        return 0
    try:
        return commands[arguments[0]](variables)
    except (GitHubError, store.StoreError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
