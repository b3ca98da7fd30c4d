"""The modules that the calculator needs, what each name in them is, and what cannot be translated about it.

expressions.py and translator.py write the script; what is refused here is what no single expression shows: imports, parameters, classes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from macros.findings import Finding

# Names in the script begin with a mark until it is complete: those of modules, and those of attributes and methods.
GLOBAL, MEMBER = "\ue000", "\ue001"
TYPES = ("bool", "int", "float", "str", "list", "tuple", "dict", "set")
IGNORED_IMPORTS = ("__future__", "typing", "collections.abc")
TRANSLATED = ("macros/estimator/", "macros/configs/")
DATACLASS_WORDS = ("dataclass", "field", "fields", "replace")


@dataclass
class Signature:
    """Parameters of a function, method or class."""

    names: list[str]
    defaults: dict[str, ast.expr] = field(default_factory=dict)
    rest: str = ""


@dataclass
class Known:
    """A name of a module.

    kind   "function", "class", "value", "type", "module", "math" or "dataclasses"
    js     its marked name in the script; of a module its path
    """

    kind: str
    js: str
    signature: Signature | None = None
    methods: dict[str, Signature] = field(default_factory=dict)
    properties: set[str] = field(default_factory=set)


@dataclass
class Module:
    """One file: its tree and the names at its top level."""

    path: str
    tree: ast.Module
    names: dict[str, Known] = field(default_factory=dict)


class Program:
    """All modules that the entries import, in the order in which they must run."""

    def __init__(self, read: Callable[[str], str], entries: Sequence[str] = ()) -> None:
        self.read = read
        self.entries = entries
        self.modules: dict[str, Module] = {}
        self.findings: list[Finding] = []
        self.classes: list[Known] = []
        self.attributes: set[str] = {"name"}  # of the fields of a dataclass
        self.taken: dict[str, int] = {}

    def refuse(self, path: str, node: ast.AST, message: str) -> str:
        """Note what is wrong; the text returned stands in for the code."""
        self.findings.append(Finding(path, getattr(node, "lineno", 0), message))
        return "null"

    def load(self, path: str) -> Module:
        """Read a file and, before it, what it imports; learn its names."""
        if path in self.modules:
            return self.modules[path]
        module = Module(path, ast.parse(self.read(path), path))
        for node in module.tree.body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._import(module, node)
        self.modules[path] = module
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef):
                module.names[node.name] = Known("function", self._unique(node.name), self.signature(path, node.args))
            elif isinstance(node, ast.ClassDef):
                module.names[node.name] = self._class(path, node)
            else:
                kind = "type" if is_type_alias(node) else "value"
                for name in assigned([node]):
                    module.names[name] = Known(kind, self._unique(name))
        return module

    def _unique(self, name: str) -> str:
        """Modules share one scope in the script, so a name that is taken gets a number."""
        self.taken[name] = self.taken.get(name, 0) + 1
        return f"{GLOBAL}{name}" + (f"_{self.taken[name]}" if self.taken[name] > 1 else "")

    def _import(self, module: Module, node: ast.Import | ast.ImportFrom) -> None:
        renamed = [alias for alias in node.names if alias.asname]
        if renamed:
            self.refuse(module.path, node, f"import {renamed[0].name} under its own name")
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name != "math":
                    self.refuse(module.path, node, f"import {alias.name} does not exist in the browser; only math does")
                module.names[alias.name] = Known("math", "")
            return
        source = node.module or ""
        if source in IGNORED_IMPORTS or source == "dataclasses":
            for alias in node.names:
                module.names[alias.name] = Known("dataclasses" if alias.name in DATACLASS_WORDS else "type", alias.name)
            return
        folder = module.path.rpartition("/")[0] + "/" if node.level else ""
        target = folder + source.replace(".", "/")
        if target == "macros/estimator":  # the package: its modules by name
            source, target = "", "macros/estimator/"
        if node.level > 1 or not (target.startswith(TRANSLATED) or f"{target}.py" in self.entries):
            self.refuse(
                module.path,
                node,
                f"import of {source or '.'}; only math, dataclasses, the estimator's modules and those of portable.ENTRIES are translated",
            )
            return
        if not source:
            for alias in node.names:
                module.names[alias.name] = Known("module", self.load(f"{target}{alias.name}.py").path)
            return
        target += ".py"
        names = self.load(target).names
        for alias in node.names:
            if alias.name in names:
                module.names[alias.name] = names[alias.name]
            else:
                self.refuse(module.path, node, f"{target} has no {alias.name!r}")

    def signature(self, path: str, args: ast.arguments) -> Signature:
        """The parameters; keyword-only ones follow the others, because calls are resolved here."""
        if args.kwarg or (args.vararg and args.kwonlyargs):
            self.refuse(
                path,
                args.args[0] if args.args else args.vararg or args.kwarg,
                "name every parameter; ** and * before keywords are not translated",
            )
        names = [arg.arg for arg in (*args.posonlyargs, *args.args)]
        defaults = dict(zip(names[len(names) - len(args.defaults) :], args.defaults))
        for arg, default in zip(args.kwonlyargs, args.kw_defaults):
            names.append(arg.arg)
            if default is not None:
                defaults[arg.arg] = default
        for default in defaults.values():
            if any(isinstance(part, (ast.List, ast.Dict, ast.Set, ast.Call)) for part in ast.walk(default)):
                self.refuse(path, default, "a default that can change; write None and make it inside")
        return Signature(names, defaults, args.vararg.arg if args.vararg else "")

    def _class(self, path: str, node: ast.ClassDef) -> Known:
        known = Known("class", self._unique(node.name), Signature([]))
        if node.bases or node.keywords:
            self.refuse(path, node, f"class {node.name} has a base class; write it without inheritance")
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                known.signature.names.append(part.target.id)
                if part.value is not None and factory_of(part.value) != "":
                    known.signature.defaults[part.target.id] = part.value
            elif isinstance(part, ast.FunctionDef):
                signature = self.signature(path, part.args)
                if not signature.names or signature.names[0] != "self":
                    self.refuse(path, part, f"{part.name} is no method with self")
                signature.names = signature.names[1:]
                if part.name == "__init__":
                    known.signature = signature
                elif any(isinstance(mark, ast.Name) and mark.id == "property" for mark in part.decorator_list):
                    known.properties.add(part.name)
                else:
                    known.methods[part.name] = signature
                for inner in ast.walk(part):
                    if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
                        self.attributes.add(inner.attr)
        self.attributes |= {*known.signature.names, *known.properties}
        self.classes.append(known)
        return known


def factory_of(value: ast.expr) -> str | None:
    """The default_factory of a `field(…)`: its name, "" for a field without default, None for another value."""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "field"):
        return None
    given = {keyword.arg: keyword.value for keyword in value.keywords}
    return ast.unparse(given["default_factory"]) if "default_factory" in given else ""


def is_type_alias(node: ast.stmt) -> bool:
    value = getattr(node, "value", None)
    return isinstance(node, ast.Assign) and isinstance(value, ast.Subscript) and ast.unparse(value.value) in TYPES


def assigned(body: Sequence[ast.AST]) -> list[str]:
    """Names that statements bind, in their order, leaving out those of inner functions and comprehensions."""
    names: list[str] = []
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.append(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.append(node.id)
        elif not isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            if isinstance(node, ast.ExceptHandler) and node.name:
                names.append(node.name)
            names += assigned(list(ast.iter_child_nodes(node)))
    return list(dict.fromkeys(names))
