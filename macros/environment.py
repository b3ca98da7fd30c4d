"""Jinja for articles: it goes on after an author's mistake, remembers it with its line, and escapes data."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, Undefined, nodes
from jinja2.runtime import Context
from markupsafe import Markup, escape

from macros.caption import Told
from macros.dataset import Collection
from macros.findings import suggest
from macros.records import Record
from macros.run import either

_MARK = Markup('<span class="vg-error">⚠</span>')
_UNKNOWN_FILTER = "unknown filter"  # with a blank: nobody can type it
_JINJAS_OWN = ("range", "dict", "lipsum", "cycler", "joiner", "namespace")


@dataclass(frozen=True)
class Words:
    """Everything an article may use, by name, ready for a Jinja environment."""

    variables: Mapping[str, Any]
    functions: Mapping[str, Callable[..., Any]]
    filters: Mapping[str, Callable[..., Any]]


class Broken(Undefined):
    """Stands for a value that a mistake left undefined: takes part in anything, shows a mark, reports nothing.

    Whoever makes one has recorded the finding.
    """

    def _itself(self, *args: Any, **kwargs: Any) -> Broken:
        return self

    __call__ = __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _itself
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _itself
    __pow__ = __rpow__ = __neg__ = __pos__ = _itself

    def __getattr__(self, name: str) -> Broken:
        if name[:2] == "__":
            raise AttributeError(name)
        return self

    def __str__(self) -> str:
        return _MARK

    def __html__(self) -> Markup:
        return _MARK

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    __lt__ = __le__ = __gt__ = __ge__ = lambda self, other: False
    __hash__ = object.__hash__

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0


class ArticleContext(Context):
    """Jinja's context, in which a call that fails is a recorded mistake and not the end of the page."""

    def call(self, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        # A word still looks at the names of its arguments, so that both mistakes show at once.
        is_word = hasattr(called, "__wrapped__")
        if not is_word and any(_is_broken(value) for value in (called, *args, *kwargs.values())):
            return Broken()
        try:
            return super().call(called, *args, **kwargs)
        except ValueError as error:
            return self.environment.report(sentence(error))
        except Exception as error:
            return self.environment.report(f"{getattr(called, '__name__', called)}: {sentence(error)}")


class ArticleEnvironment(Environment):
    """Jinja for articles: escapes data, records mistakes with their line, refuses private attributes."""

    context_class = ArticleContext

    def __init__(self, words: Words) -> None:
        # `{#` would swallow bash's ${#array[@]} and headings like {#anchor}.
        super().__init__(
            undefined=Broken,
            autoescape=True,
            comment_start_string="{##",
            comment_end_string="##}",
            keep_trailing_newline=True,
            finalize=_safe,
        )
        self.charts_on_page = 0
        self.told = Told()
        self._mistakes: list[tuple[int, str]] = []
        self.globals = {**words.variables, **words.functions}
        self.filters.update({name: _guarded(name, word) for name, word in words.filters.items()})
        self.filters[_UNKNOWN_FILTER] = lambda value: Broken()
        self.globals.update({name: _guarded(name, word) for name, word in words.functions.items()})

    def report(self, message: str, line: int | None = None) -> Broken:
        """Record a mistake on a line of the template, by default the one being rendered."""
        self._mistakes.append((line or _line() or 1, message))
        return Broken()

    def take_mistakes(self) -> list[tuple[int, str]]:
        """The mistakes recorded so far, each once, in the order of lines."""
        found, self._mistakes = list(dict.fromkeys(self._mistakes)), []
        return sorted(found)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self._member(obj, attribute, super().getattr)

    def getitem(self, obj: Any, argument: Any) -> Any:
        return self._member(obj, argument, super().getitem)

    def _member(self, obj: Any, name: Any, look_up: Callable[[Any, Any], Any]) -> Any:
        if isinstance(obj, Broken) or isinstance(name, Broken):
            return obj if isinstance(obj, Broken) else name
        if _line() is None:
            # Jinja tries to work out `"".x` while it compiles, when nobody knows the line; it asks again in the page.
            raise nodes.Impossible
        try:
            value = look_up(obj, name) if str(name)[:1] != "_" else Broken()
        except Exception as error:
            return self.report(sentence(error))
        if isinstance(value, Broken):
            known = [member for member in dir(type(obj)) + list(getattr(obj, "__dict__", ())) if member[:1] != "_"]
            if isinstance(obj, Mapping):
                known = [str(key) for key in obj]
            elif type(obj).__module__ == "builtins":
                known = []  # what Python can do with a text or a list is no help to an author
            return self.report(f"{_kind(obj)} has no {str(name)!r}{either(name, known) if known else ''}")
        return value


def _kind(value: Any) -> str:
    """What a value is, for a message: a record by its key, anything else by its class."""
    if isinstance(value, Record):
        return value.key
    if isinstance(value, Collection):
        return value.path
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name[:1].lower()}{name[1:]}"


def _safe(value: Any) -> Any:
    """Data in running text: a bracket could start a Markdown link (HTML is escaped anyway)."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return escape(value).replace("[", Markup("&#91;"))
    return value


def _guarded(name: str, word: Callable[..., Any]) -> Callable[..., Any]:
    """A word that reports its mistakes instead of raising them; takes Jinja's context first."""
    signature = inspect.signature(word)
    parameters = list(signature.parameters.values())[1:]
    own = signature.replace(parameters=parameters)

    @functools.wraps(word)
    def guarded(context: Any, /, *args: Any, **kwargs: Any) -> Any:
        environment = context.environment
        if (wrong := _wrong_arguments(name, own, args, kwargs)) is not None:
            return environment.report(wrong)
        if any(_is_broken(value) for value in (*args, *kwargs.values())):
            return Broken()
        try:
            return word(context, *args, **kwargs)
        except ValueError as error:
            return environment.report(sentence(error))
        except Exception as error:
            return environment.report(f"{name}: {sentence(error)}")

    return guarded


def _is_broken(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_broken(item) for item in value)
    if isinstance(value, dict):
        return any(_is_broken(item) for item in value.values())
    return isinstance(value, Broken)


def _wrong_arguments(name: str, signature: inspect.Signature, args: tuple, kwargs: dict) -> str | None:
    """What is wrong with a call's arguments, or None."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        known = list(signature.parameters)
        unknown = [key for key in kwargs if key not in known]
        if unknown:
            return f"{name} has no argument {unknown[0]!r}{either(unknown[0], known, 'it takes')}"
        return f"{name}: {error}; it takes {', '.join(known)}"
    return None


def sentence(error: BaseException) -> str:
    """An exception as one line."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"


def _line() -> int | None:
    """The line of the template that is being rendered: that of its innermost frame; None while it is compiled."""
    frame = sys._getframe(1)
    while frame is not None:
        template = frame.f_globals.get("__jinja_template__")
        if template is not None:
            return template.get_corresponding_lineno(frame.f_lineno)
        frame = frame.f_back
    return None


def check_names(tree: nodes.Template, environment: ArticleEnvironment, variables: Mapping[str, Any]) -> None:
    """Report unknown words, filters and tests with their own lines, and make the unknown filters harmless."""
    own = {name.name for name in tree.find_all(nodes.Name) if name.ctx in ("store", "param")} | {"loop"}
    words = [name for name in environment.globals if name not in _JINJAS_OWN]
    for name in tree.find_all(nodes.Name):
        if name.ctx == "load" and not any(name.name in known for known in (own, environment.globals, variables)):
            environment.report(f"there is no word {name.name!r}{suggest(name.name, [*words, *own])}", name.lineno)
    for used in tree.find_all(nodes.Filter):
        if used.name not in environment.filters:
            environment.report(
                f"there is no filter {used.name!r}{suggest(used.name, environment.filters)}", used.lineno
            )
            used.name, used.args, used.kwargs = _UNKNOWN_FILTER, [], []
    for used in tree.find_all(nodes.Test):
        if used.name not in environment.tests:
            environment.report(f"there is no test {used.name!r}{suggest(used.name, environment.tests)}", used.lineno)
            used.name, used.args, used.kwargs = "defined", [], []
