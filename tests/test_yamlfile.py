"""YAML is read as text with lines; what YAML would decide in silence is a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from macros import yamlfile
from macros.findings import DataErrors


def findings(text: str, first_line: int = 1) -> list[str]:
    with pytest.raises(DataErrors) as caught:
        yamlfile.parse(text, "data/x.yml", first_line)
    return [str(finding) for finding in caught.value.findings]


@pytest.mark.parametrize("text", ["no", "1.10", "12:30:00", "1e9", "2026-13-01", "0x10", "null", "~", "yes", "1_000"])
def test_every_scalar_stays_what_was_typed(text):
    assert yamlfile.parse(f"value: {text}\n", "data/x.yml").value == {"value": text}


def test_every_value_has_its_line():
    document = yamlfile.parse("a:\n  b: 1\n  c:\n    - x\n    - y: {z: 2}\n", "data/x.yml")
    assert document.value == {"a": {"b": "1", "c": ["x", {"y": {"z": "2"}}]}}
    assert document.line("a") == 1
    assert document.line("a", "c") == 3
    assert document.line("a", "c", 1, "y", "z") == 5


def test_what_is_not_there_has_the_line_of_its_parent():
    document = yamlfile.parse("# comment\na:\n  b: 1\n", "data/x.yml")
    assert document.line("a", "missing", "deeper") == 2
    assert document.line("elsewhere") == 2


def test_an_empty_text_is_an_empty_mapping():
    assert yamlfile.parse("# nothing yet\n", "data/x.yml").value == {}


def test_lines_count_from_the_first_line_of_the_text():
    assert yamlfile.parse("a: 1\nb: 2\n", "docs/de/x.md", first_line=2).line("b") == 3


def test_the_second_of_two_equal_keys_is_a_finding():
    assert findings("a: 1\nb: 2\na: 3\n") == ["data/x.yml:3: 'a' stands here a second time; first in line 1"]


def test_equal_keys_in_different_places_are_fine():
    assert yamlfile.parse("a: {x: 1}\nb: {x: 2}\n", "data/x.yml").value == {"a": {"x": "1"}, "b": {"x": "2"}}


def test_several_mistakes_are_found_at_once():
    text = "a: &anchor 1\nb: *anchor\nc: 1\nc: 2\n[x, y]: 3\n"
    assert findings(text) == [
        "data/x.yml:2: an alias (*name) is not allowed; write the value out",
        "data/x.yml:4: 'c' stands here a second time; first in line 3",
        "data/x.yml:5: a key must be text",
    ]


def test_aliases_cannot_grow_without_bound():
    """The “billion laughs”: each line doubles the one before."""
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    assert all("an alias (*name) is not allowed" in finding for finding in findings(text))


def test_an_alias_of_itself_ends():
    assert findings("a: &a [*a]\n") == ["data/x.yml:1: an alias (*name) is not allowed; write the value out"]


def test_nesting_has_a_bottom():
    assert "data/x.yml:1: nested more than 12 levels deep" in findings("[" * 40 + "]" * 40)


def test_text_that_is_no_yaml_has_the_line_where_it_breaks():
    (finding,) = findings("a: 1\nb: [1, 2\nc: 3\n")
    assert finding.startswith("data/x.yml:3: not valid YAML: ")
    assert "\n" not in finding


def test_tabs_and_control_characters_are_findings():
    assert findings("a:\n\tb: 1\n")[0].startswith("data/x.yml:2: not valid YAML: ")
    assert findings("a: \x01\n")[0].startswith("data/x.yml:1: not valid YAML: ")


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system ['true']", "!!binary aGk=", "!own x"])
def test_tags_make_no_objects(tag):
    value = yamlfile.parse(f"a: {tag}\n", "data/x.yml").value["a"]
    assert isinstance(value, (str, list))


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(DataErrors, match="^data/x.yml: cannot be read: No such file or directory$"):
        yamlfile.read(tmp_path / "x.yml", "data/x.yml")


def test_a_file_that_is_not_utf_8(tmp_path: Path):
    (tmp_path / "x.yml").write_bytes("a: 1\nb: Größe\n".encode("latin-1"))
    with pytest.raises(DataErrors, match="^data/x.yml:2: is not UTF-8 text$"):
        yamlfile.read(tmp_path / "x.yml", "data/x.yml")


def test_a_file_that_is_too_large(tmp_path: Path):
    (tmp_path / "x.yml").write_bytes(b"# " + b"x" * 4_000_000)
    with pytest.raises(DataErrors, match="^data/x.yml: is larger than 4000000 bytes$"):
        yamlfile.read(tmp_path / "x.yml", "data/x.yml")
