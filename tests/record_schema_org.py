"""Record what schema.org defines about the types that our pages use: their ancestors, their properties, what each property takes.

Run it by hand after a release of schema.org, or when a page begins to use another type, with the release's own file,
`data/releases/VERSION/schemaorg-current-https.jsonld` of https://github.com/schemaorg/schemaorg:

    python tests/record_schema_org.py schemaorg-current-https.jsonld VERSION

It writes tests/recorded/schema_org.json, which `make test` reads.
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

RECORD = Path(__file__).resolve().parent / "recorded" / "schema_org.json"
TYPES = (
    "Answer", "Article", "BlogPosting", "BreadcrumbList", "DataDownload", "Dataset", "FAQPage", "ImageObject", "ListItem", "Organization",
    "Question", "WebApplication", "WebPage", "WebSite",
)  # fmt: skip


def named(node: dict[str, Any], key: str) -> list[str]:
    """The names that a node gives under a key, without the vocabulary's prefix."""
    value = node.get(key, [])
    return sorted(part["@id"].removeprefix("schema:") for part in (value if isinstance(value, list) else [value]))


def main() -> None:
    graph = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["@graph"]
    nodes = {node["@id"].removeprefix("schema:"): node for node in graph}

    def ancestors(name: str) -> set[str]:
        parents = named(nodes[name], "rdfs:subClassOf") if name in nodes else []
        return {name}.union(*(ancestors(parent) for parent in parents if parent in nodes))

    types = {name: sorted(ancestors(name)) for name in TYPES}
    known = set().union(*types.values())
    properties = {
        name: {"of": sorted(known & set(named(node, "schema:domainIncludes"))), "takes": named(node, "schema:rangeIncludes")}
        for name, node in sorted(nodes.items())
        if node["@type"] == "rdf:Property" and "schema:supersededBy" not in node and known & set(named(node, "schema:domainIncludes"))
    }
    lines = [f'{{"version": "{sys.argv[2]}", "recorded": "{date.today()}",', ' "types": {']
    lines.append(",\n".join(f'  "{name}": {json.dumps(found)}' for name, found in types.items()))
    lines += [" },", ' "properties": {']
    lines.append(",\n".join(f'  "{name}": {json.dumps(found)}' for name, found in properties.items()))
    lines += [" }}", ""]
    RECORD.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
