"""The same tree builds with ProperDocs, the fork of MkDocs that the guide can move to: equal but for who made it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests import site_build

GENERATOR = re.compile(rb'<meta name="generator"[^>]*>')


def test_properdocs_makes_the_same_site(sample_project: Path, sample_site: Path, tmp_path: Path) -> None:
    other = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "properdocs", "build", "--strict", "--site-dir", str(other)], cwd=sample_project,
        env=site_build.environment(), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    files = {path.relative_to(sample_site) for path in sample_site.rglob("*") if path.is_file()}
    assert files == {path.relative_to(other) for path in other.rglob("*") if path.is_file()}
    assert len(files) > 100
    different = [
        name for name in sorted(files)
        if GENERATOR.sub(b"", (sample_site / name).read_bytes()) != GENERATOR.sub(b"", (other / name).read_bytes())
    ]  # fmt: skip
    assert different == []
