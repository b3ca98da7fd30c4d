"""Who may import whom, who may know which library, and what a file says of itself: read from the syntax trees."""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("macros", "overrides", "publishing", "tests")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
MACROS = [path for path in FILES if path.startswith("macros/")]
ESTIMATOR = [path for path in FILES if path.startswith("macros/estimator/")]

# A longer file does more than one thing. The script runs alone on other machines, so it cannot be two.
LONGEST = 600
MAY_BE_LONGER = {"macros/measure_script.py"}

# The one file that knows a library: replacing it means changing that file. Below overrides/ stands the site's frame.
KNOW = {
    "pydantic": {"macros/records.py"},
    "babel": {"macros/language.py"},
    "yaml": {"macros/yamlfile.py"},
    "jinja2": {"macros/environment.py", "macros/template.py", "macros/vocabulary.py", "macros/pages.py"},
    "mkdocs": set(),
    "material": set(),
    "torch": {"macros/measure_script.py"},
    "transformers": {"macros/measure_script.py"},
}

DATA = {"findings", "yamlfile", "records", "dataset", "recipes"}
# What looks down at everything else: the commands and what they check.
TOP = {"__main__", "articles", "catalogues", "changes", "check", "export", "frontmatter", "links", "models", "pages", "parity", "prose",
       "schemas"}


def imports(path: str) -> set[str]:
    """Full names of the modules that a file imports, wherever in it."""
    package = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
    if not path.endswith("/__init__.py"):
        package = package[:-1]
    found = set()
    for node in ast.walk(FILES[path]):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            inside = {f"{module}.{alias.name}" for alias in node.names}
            files = {name for name in inside if f"{name.replace('.', '/')}.py" in FILES}
            found |= files or {module}
    return found


def ours(path: str) -> set[str]:
    """The modules of macros/ that a file imports, the estimator as one."""
    return {name.split(".")[1] for name in imports(path) if name.startswith("macros.")}


def test_the_estimator_is_pure():
    allowed = {"__future__", "math", "dataclasses", "enum"}
    for path in ESTIMATOR:
        outside = {name for name in imports(path) if not name.startswith("macros.estimator")}
        assert outside <= allowed, f"{path} imports {', '.join(sorted(outside - allowed))}"


def test_the_estimator_opens_nothing():
    for path in ESTIMATOR:
        used = {node.id for node in ast.walk(FILES[path]) if isinstance(node, ast.Name)}
        assert not used & {"open", "print", "input", "eval", "exec", "__import__", "globals"}, path


@pytest.mark.parametrize("library", KNOW)
def test_only_one_place_knows_a_library(library):
    knowing = {path for path in MACROS if any(name.split(".")[0] == library for name in imports(path))}
    assert knowing <= KNOW[library]


def test_data_knows_neither_languages_nor_pages():
    for name in DATA:
        assert ours(f"macros/{name}.py") <= DATA | {"estimator"}, name


def test_a_language_knows_no_records():
    assert ours("macros/language.py") <= {"estimator", "findings", "yamlfile"}
    assert {name for name in imports("macros/language.py") if "estimator" in name} == {"macros.estimator.units"}


def test_nothing_looks_up():
    """Words, data and estimator work without the commands and checks."""
    for path in MACROS:
        name = path.removeprefix("macros/").removesuffix(".py")
        if name not in TOP:
            assert not ours(path) & TOP, f"{path} imports {', '.join(sorted(ours(path) & TOP))}"


def test_the_adapter_is_imported_by_nobody():
    for path in MACROS:
        assert "macros" not in imports(path), path


def test_imports_go_one_way():
    graph = {path: {f"{name.replace('.', '/')}.py" for name in imports(path)} & set(FILES) for path in MACROS}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the files


def test_what_publishes_needs_nothing_installed():
    """The machine with the tokens runs these files as they lie there."""
    for path in [path for path in FILES if path.startswith("publishing/")]:
        outside = {name for name in imports(path) if name.split(".")[0] not in sys.stdlib_module_names}
        assert {name for name in outside if not name.startswith("publishing")} <= {"macros.changes_report"}, path
    assert imports("macros/changes_report.py") <= sys.stdlib_module_names | {"collections.abc"}


def test_nothing_outside_the_adapter_knows_the_engine():
    """Its name stands in no other code, not even in a string; where a docstring or comment says it, nothing depends on it."""
    for path in [path for path in FILES if path.startswith(("macros/", "publishing/")) and path != "macros/__init__.py"]:
        texts = {node.value for node in ast.walk(FILES[path]) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        prose = {ast.get_docstring(node, clean=False) for node in ast.walk(FILES[path])
                 if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef))}  # fmt: skip
        named = {text for text in texts - prose if "mkdocs" in text.lower() or "properdocs" in text.lower()}
        assert not named | {name for name in imports(path) if name.split(".")[0] in ("mkdocs", "properdocs", "material")}, path


def test_only_what_is_declared_is_imported():
    declared = {"babel", "jinja2", "markupsafe", "mkdocs", "pydantic", "yaml"}
    for path in [path for path in FILES if path.startswith(("macros/", "overrides/"))]:
        if path in MAY_BE_LONGER:
            continue
        # A hook finds its neighbours by their bare names, because MkDocs puts their folder on the path.
        own = {Path(other).stem for other in FILES if Path(other).parent == Path(path).parent} | {"macros"}
        roots = {name.split(".")[0] for name in imports(path)} - own
        assert roots <= declared | sys.stdlib_module_names | {"material"}, path


@pytest.mark.parametrize("path", [path for path in FILES if FILES[path].body])
def test_a_file_says_in_its_first_sentence_what_it_is_for(path):
    docstring = ast.get_docstring(FILES[path])
    assert docstring, f"{path} has no docstring"
    first = docstring.splitlines()[0]
    assert len(first.split()) >= 4, f"{path}: {first}"
    assert docstring.partition("\n\n")[0].rstrip().endswith((".", "!", ":")), f"{path}: {first}"


@pytest.mark.parametrize("path", [path for path in FILES if path not in MAY_BE_LONGER])
def test_a_file_is_short(path):
    lines = len((ROOT / path).read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{path} has {lines} lines; a file that cannot be read in one go is two files"
