"""What becomes of a training configuration's keys: understood, ignored, assumed or refused, and the recipe."""

from __future__ import annotations

from .ignorable import PREFIXES, WORDS
from .text import FALSE, NOTHING, TRUE, Tree, lowered, number


class Reading:
    """One configuration on its way to a recipe.

    known    what `configs.known` makes of the data files: models and presets
    keys     the recipe so far, with `model` and `preset`

    The four lists hold {"key", "value", "line", "says", "values"}: a key of the configuration (of `assumed`: of the
    recipe), its value as text, its line or 0, the key of a message and the message's values.
    """

    def __init__(self, tree: Tree, known: dict[str, object], preset: str) -> None:
        self.tree = tree
        self.known = known
        self.preset = preset
        self.keys: dict[str, object] = {"preset": preset}
        self.seen: dict[str, bool] = {}
        self.understood: list[dict[str, object]] = []
        self.ignored: list[dict[str, object]] = []
        self.assumed: list[dict[str, object]] = []
        self.errors: list[dict[str, object]] = []
        for error in tree.errors:
            self.errors.append({"key": "", "value": "", **error})

    # ---- what stands in the configuration ----
    def raw(self, key: str) -> object:
        """The value of a key (dots lead into maps), None where there is none; the key counts as looked at."""
        value: object = self.tree.value
        for part in key.split("."):
            if not isinstance(value, dict) or part not in value:
                return None
            value = value[part]
        self.seen[key] = True
        return None if isinstance(value, str) and lowered(value) in NOTHING else value

    def text(self, key: str) -> str:
        """A value as text, "" where there is none."""
        value = self.raw(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            self.refuse(key, "config.no_text")
            return ""
        return value

    def flag(self, key: str) -> bool | None:
        """A value as true or false, None where there is none."""
        value = self.text(key)
        if not value:
            return None
        if lowered(value) in TRUE:
            return True
        if lowered(value) in FALSE:
            return False
        self.refuse(key, "config.no_flag")
        return None

    def count(self, key: str) -> int | None:
        """A value as a whole number, None where there is none."""
        value = self.text(key)
        if not value:
            return None
        found = number(value.replace("_", ""))
        if isinstance(found, int):
            return found
        self.refuse(key, "config.no_count")
        return None

    def share(self, key: str) -> float | None:
        """A value as a number."""
        value = self.text(key)
        if not value:
            return None
        found = number(value)
        if found is None:
            self.refuse(key, "config.no_number")
        return found

    def names(self, key: str) -> list[str]:
        """A value as a list of names: a list, or a text with commas."""
        value = self.raw(key)
        if value is None:
            return []
        if isinstance(value, str):
            return [part for part in value.replace(" ", "").split(",") if part]
        if isinstance(value, list) and all(isinstance(name, str) for name in value):
            return value
        self.refuse(key, "config.no_list")
        return []

    # ---- what becomes of it ----
    def entry(self, key: str, says: str, values: dict[str, object]) -> dict[str, object]:
        value: object = self.tree.value
        for part in key.split("."):
            value = value.get(part, "") if isinstance(value, dict) else ""
        shown = value if isinstance(value, str) else f"{value!r}"
        return {"key": key, "value": shown, "line": self.tree.lines.get(key, 0), "says": says, "values": values}

    def became(self, key: str, becomes: dict[str, object]) -> None:
        """A key of the configuration sets these keys of the recipe."""
        self.keys.update(becomes)
        said = self.entry(key, "config.became", {"recipe": written(becomes)})
        said["becomes"] = becomes
        self.understood.append(said)

    def used(self, key: str) -> None:
        """A key of the configuration had a part in what another one became."""
        self.understood.append(self.entry(key, "config.used", {}))

    def assume(self, becomes: dict[str, object], says: str = "config.default") -> None:
        """Nothing was said, so the framework's default counts."""
        self.keys.update(becomes)
        preset = self.known["presets"][self.preset]
        values = {"framework": preset["name"], "version": preset["version"]}
        for key, value in becomes.items():
            self.assumed.append({"key": key, "value": shown_value(value), "line": 0, "says": says, "values": values})

    def like(self, key: str, becomes: dict[str, object], says: str = "config.like") -> None:
        """A key counts as something that it is not exactly, or is left out of the estimate."""
        self.keys.update(becomes)
        said = self.entry(key, says, {"recipe": written(becomes)})
        said["becomes"] = becomes
        self.assumed.append(said)

    def left_out(self, key: str) -> None:
        """A key moves memory and is not in the estimate."""
        self.like(key, {}, "config.left_out")

    def refuse(self, key: str, says: str, what: str = "") -> None:
        """What the estimator cannot compute, or what cannot be understood."""
        self.seen[key] = True
        self.errors.append(self.entry(key, says, {"what": what} if what else {}))

    def either(self, key: str, value: object, becomes: dict[str, object], otherwise: dict[str, object]) -> None:
        """`becomes` where the key had a value, else the framework's default."""
        if value is None:
            self.assume(otherwise)
        else:
            self.became(key, becomes)

    def finish(self) -> dict[str, object]:
        """The answer; keys that nobody has looked at are ignored, with the reason."""
        for key, value in self.tree.value.items():
            self.rest(key, value)
        method = self.keys.get("method", "")
        for key, value in self.known["presets"][self.preset]["keys"].get(method, {}).items():
            # As estimator/recipe.py has it: what hangs on a key that was given is that key's to decide.
            hangs = (key == "base_dtype" and "precision" in self.keys) or (key == "double_quant" and "quantization" in self.keys)
            if key not in self.keys and not hangs:
                self.assume({key: value})
                del self.keys[key]  # the preset has it
        return {
            "recipe": self.keys,
            "understood": self.understood,
            "ignored": self.ignored,
            "assumed": self.assumed,
            "errors": self.errors,
        }

    def rest(self, key: str, value: object) -> None:
        inside = [seen for seen in self.seen if seen.startswith(key + ".")]
        if isinstance(value, dict) and inside:
            for name in value:
                self.rest(f"{key}.{name}", value[name])
        elif key not in self.seen:
            word = key.split(".")[-1]
            harmless = word in WORDS or any(word.startswith(prefix) for prefix in PREFIXES)
            idle = self.keys.get("method") == "full" and word.startswith("lora_")
            says = "config.harmless" if harmless else "config.off" if idle else "config.unknown"
            self.ignored.append(self.entry(key, says, {}))
        elif isinstance(value, str) and lowered(value) in NOTHING:
            self.ignored.append(self.entry(key, "config.empty", {}))
        elif key not in [said["key"] for said in (*self.understood, *self.assumed, *self.errors)]:
            self.ignored.append(self.entry(key, "config.off", {}))


def shown_value(value: object) -> str:
    """A recipe's value as it is typed on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return f"{value}"


def written(keys: dict[str, object]) -> str:
    """Recipe keys with their values in one line."""
    return ", ".join(f"{key} {shown_value(value)}" for key, value in keys.items())
