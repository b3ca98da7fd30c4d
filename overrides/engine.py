"""`python overrides/engine.py TREE SITE`: builds the pages of any checkout of this repository into a folder.

The one place besides mkdocs.yml, the Makefile and the hooks that names the site generator. Whoever builds a tree that
somebody else wrote runs its code, so the build gets only the variables that it needs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# Nothing that could be a secret: a token in the environment of whoever builds stays there.
VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "SOURCE_DATE_EPOCH",
    "SITE_URL",
    "REPOSITORY_URL",
    "PREVIEW_PR",
    "PREVIEW_COMMIT",
)


def environment() -> dict[str, str]:
    """The variables of a build."""
    quiet = {"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true", "NO_COLOR": "1"}
    return {**{name: os.environ[name] for name in VARIABLES if name in os.environ}, **quiet}


def main() -> int:
    """Build; what the generator says goes to standard error. Returns its exit code."""
    if len(sys.argv) < 3:
        print("usage: python overrides/engine.py TREE SITE [--strict]", file=sys.stderr)
        return 2
    tree, site, *options = sys.argv[1:]
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(Path(site).absolute()), *options]
    return subprocess.run(command, cwd=tree, env=environment(), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
