"""`python -m macros schemas`: the JSON Schemas in `data/schemas/`, by which editors complete keys and show what they mean."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from macros import records
from macros.findings import Finding

ROOT = Path(__file__).parent.parent
FOLDER = "data/schemas"


def texts() -> dict[str, str]:
    """The text of each schema file, by its path."""
    return {
        f"{FOLDER}/{name}.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in records.schemas().items()
    }


def findings(root: Path) -> Iterator[Finding]:
    """Schemas that say something else than records.py, and data files that do not name theirs."""
    for path, text in texts().items():
        file = root / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            yield Finding(path, 0, "is not what records.py says; write it anew: python -m macros schemas")
    for name in records.KINDS:
        file, wanted = root / "data" / f"{name}.yml", comment(name)
        if file.exists() and not file.read_text(encoding="utf-8").startswith(wanted):
            says = f"begins without the line that tells editors its schema: {wanted}"
            yield Finding(f"data/{name}.yml", 1, says, warning=True)


def comment(name: str) -> str:
    """The first line of a data file, by which editors find its schema."""
    return f"# yaml-language-server: $schema=schemas/{name}.json"


def main(arguments: Sequence[str]) -> int:
    """The command. Writes every schema."""
    argparse.ArgumentParser(prog="python -m macros schemas", description=__doc__).parse_args(arguments)
    for path, text in texts().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text, encoding="utf-8")
        print(path)
    return 0
