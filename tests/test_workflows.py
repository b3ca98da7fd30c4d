"""The workflows: two linters find nothing, nobody gets more than they need, and nothing of a stranger reaches a shell."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yml"))
BIN = Path(sys.executable).parent
LINTERS = {
    "zizmor": [str(BIN / "zizmor"), "--offline", "--no-progress", "--quiet"],
    "actionlint": [str(BIN / "actionlint"), "-shellcheck=", "-pyflakes="],
}

# A branch named `$(…)` would run here, with a token that writes.
PLANTED = """
name: planted
on: pull_request_target
permissions: write-all
jobs:
  greet:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          ref: ${{ github.event.pull_request.head.ref }}
      - run: echo ${{ github.event.pull_request.head.ref }}
"""


def read(file: Path) -> dict[str, Any]:
    # YAML takes the key `on` for true.
    return {("on" if name is True else name): value for name, value in yaml.safe_load(file.read_text(encoding="utf-8")).items()}


def lint(linter: str, *files: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*LINTERS[linter], *map(str, files)], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("linter", LINTERS)
def test_a_linter_finds_nothing(linter: str) -> None:
    done = lint(linter, *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("linter", "finds"), [("zizmor", "template-injection"), ("actionlint", "potentially untrusted")])
def test_a_linter_finds_a_hole_that_was_planted(linter: str, finds: str, tmp_path: Path) -> None:
    (tmp_path / "planted.yml").write_text(PLANTED, encoding="utf-8")
    done = lint(linter, tmp_path / "planted.yml")
    assert done.returncode != 0 and finds in done.stdout


def test_there_are_these_workflows() -> None:
    assert [file.stem for file in FILES] == ["ci", "deploy", "preview-build", "preview-clean", "preview-deploy"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    for line in file.read_text(encoding="utf-8").splitlines():
        if (used := re.search(r"uses: (\S+)(.*)", line)) and not used[1].startswith("./"):
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", used[1]), line
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", used[2]), line


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_nothing_is_filled_into_a_command(file: Path) -> None:
    for job in read(file)["jobs"].values():
        for step in job.get("steps", ()):
            assert "${{" not in step.get("run", "")
            if "actions/checkout" in step.get("uses", ""):
                assert step["with"]["persist-credentials"] is False


# Only what stands here, by job; the workflow itself gives nothing.
PERMISSIONS = {
    "ci": {"test": {"contents": "read"}, "build": {"contents": "read"}},
    "deploy": {
        "ci": {"contents": "read"},
        "build": {"contents": "read", "pages": "read"},
        "publish": {"pages": "write", "id-token": "write"},
    },
    "preview-build": {"build": {"contents": "read"}},
    "preview-clean": {"clean": {"contents": "read", "pull-requests": "read"}},
    "preview-deploy": {"deploy": {"actions": "read", "contents": "read", "pages": "read", "pull-requests": "write"}},
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_permissions_are_the_least(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {}
    assert {name: job["permissions"] for name, job in workflow["jobs"].items()} == PERMISSIONS[file.stem]


def test_strangers_code_sees_no_secret_and_leaves_no_cache() -> None:
    for name in ("ci", "preview-build"):
        text = (FOLDER / f"{name}.yml").read_text(encoding="utf-8")
        assert "secrets" not in text.split("\non:")[1] and "cache" not in text.split("\non:")[1]
    assert set(read(FOLDER / "preview-build.yml")["on"]) == {"pull_request"}


def test_with_secrets_only_the_default_branch_runs() -> None:
    """No step may check out, or learn the name of, what the pull request holds."""
    for name in ("preview-deploy", "preview-clean"):
        workflow = read(FOLDER / f"{name}.yml")
        for job in workflow["jobs"].values():
            checkout, command = job["steps"]
            assert set(checkout["with"]) - {"ref"} == {"persist-credentials"}
            assert checkout["with"].get("ref") in (None, "${{ github.event.repository.default_branch }}")
            assert re.fullmatch(r"python3 -m publishing \w+", command["run"])
            assert all(value.startswith("${{ secrets.") for value in command["env"].values())


def test_the_site_is_deployed_after_the_tests_and_with_an_operator_only() -> None:
    jobs = read(FOLDER / "deploy.yml")["jobs"]
    assert (jobs["build"]["needs"], jobs["publish"]["needs"]) == ("ci", "build")
    assert "make deployable" in jobs["build"]["steps"][1]["run"]
    dry = subprocess.run(["make", "--dry-run", "deployable"], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line for line in dry.stdout.splitlines() if " -m " in line]
    assert "macros check --deploy" in lines[-2] and "mkdocs build --strict" in lines[-1]


def test_the_preview_is_built_from_numbers_alone() -> None:
    """The values that reach a command line of `make preview`: a number, a commit, and a fixed name."""
    (job,) = read(FOLDER / "preview-build.yml")["jobs"].values()
    (step,) = [step for step in job["steps"] if "run" in step]
    assert step["run"] == 'make preview PR="$PR" COMMIT="$COMMIT" BASE=HEAD^1'
    assert step["env"] == {"PR": "${{ github.event.number }}", "COMMIT": "${{ github.event.pull_request.head.sha }}"}
