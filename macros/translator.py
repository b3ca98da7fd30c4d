"""Writes the modules of a `Program` in JavaScript: statements, functions, classes, and at the end short names.

portable.py describes the subset, expressions.py writes what stands in a statement.
"""

from __future__ import annotations

import ast
import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from macros.expressions import EMPTY, OPERATORS, Expressions, Local, is_simple, members, short_name
from macros.findings import DataErrors
from macros.program import GLOBAL, MEMBER, Known, Program, Signature, assigned, factory_of, is_type_alias


# What stands before a name of a module, of an attribute and of the runtime; the first letters of its short name; what stays.
MARKS = (
    (GLOBAL, string.ascii_uppercase, ""),
    (MEMBER, string.ascii_lowercase, ""),
    (r"\$", string.ascii_letters, "$"),
)
# Names from outside the script: the runtime writes `name`, portable.py calls `$in_`.
KEPT = ("name", "in_")


class Writer(Expressions):
    """The script of one module."""

    # ---- statements ----
    def body(self, nodes: Sequence[ast.stmt]) -> str:
        return "".join(map(self.statement, nodes))

    def statement(self, node: ast.stmt) -> str:
        method = getattr(self, "_" + type(node).__name__, None)
        return (
            method(node) if method else self.refuse(node, f"the statement {type(node).__name__.lower()} is not translated")
        )

    def _Expr(self, node: ast.Expr) -> str:
        return "" if isinstance(node.value, ast.Constant) else self.write(node.value) + ";"

    def _Pass(self, node: ast.Pass) -> str:
        return ""

    def _Break(self, node: ast.Break) -> str:
        return "break;"

    def _Continue(self, node: ast.Continue) -> str:
        return "continue;"

    def _Return(self, node: ast.Return) -> str:
        return f"return {self.write(node.value) if node.value else 'null'};"

    def _Raise(self, node: ast.Raise) -> str:
        call = node.exc
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "ValueError"
            and len(call.args) == 1
            and not node.cause
        ):
            return f"throw new ValueError({self.write(call.args[0])});"
        return self.refuse(node, "raise ValueError(…) with one sentence; nothing else is raised")

    def _Assign(self, node: ast.Assign) -> str:
        if len(node.targets) != 1:
            return self.refuse(node, "assign to one target at a time")
        return self.assign(node.targets[0], node.value)

    def _AnnAssign(self, node: ast.AnnAssign) -> str:
        return self.assign(node.target, node.value) if node.value is not None else ""

    def assign(self, target: ast.expr, value: ast.expr) -> str:
        if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
            return f"$put({self.write(target.value)},{self.write(target.slice)},{self.write(value)});"
        if isinstance(target, ast.Tuple):
            places = ",".join(map(self.place, target.elts))
            known = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
            exact = known and not any(isinstance(part, ast.Starred) for part in value.elts)
            return f"[{places}]={self.array(value) if exact else f'$unpack({self.array(value)},{len(target.elts)})'};"
        return f"{self.place(target)}={self.write(value)};"

    def place(self, target: ast.expr) -> str:
        """Where an assignment goes: a local name or an attribute."""
        if isinstance(target, ast.Name):
            return self.scopes[-1][target.id].js
        if isinstance(target, ast.Attribute):
            return f"{self.write(target.value)}.{MEMBER}{target.attr}"
        return self.refuse(target, f"assignment to {ast.unparse(target)[:60]!r}; assign to names, attributes or items")

    def _AugAssign(self, node: ast.AugAssign) -> str:
        if type(node.op) not in OPERATORS:
            return self.refuse(node, "this operator; write it with + - * / // % **")
        change = "$grow" if isinstance(node.op, ast.Add) else OPERATORS[type(node.op)]
        if isinstance(node.target, ast.Subscript):
            target = node.target
            if isinstance(target.slice, ast.Slice):
                return self.refuse(node, "assignment to a slice; write a new list")
            return f"$change({self.write(target.value)},{self.write(target.slice)},{change},{self.write(node.value)});"
        if not is_simple(node.target):
            return self.refuse(node, "the object would be computed twice; give it a name")
        place = self.place(node.target)
        return f"{place}={change}({place},{self.write(node.value)});"

    def _Delete(self, node: ast.Delete) -> str:
        if (
            len(node.targets) == 1
            and isinstance(node.targets[0], ast.Subscript)
            and not isinstance(node.targets[0].slice, ast.Slice)
        ):
            return f"$del({self.write(node.targets[0].value)},{self.write(node.targets[0].slice)});"
        return self.refuse(node, "del of one item only")

    def _If(self, node: ast.If) -> str:
        otherwise = f"else{{{self.body(node.orelse)}}}" if node.orelse else ""
        return f"if({self.test(node.test)}){{{self.body(node.body)}}}{otherwise}"

    def _While(self, node: ast.While) -> str:
        if node.orelse:
            return self.refuse(node, "else after a loop; write a flag")
        return f"while({self.test(node.test)}){{{self.body(node.body)}}}"

    def _For(self, node: ast.For) -> str:
        if node.orelse:
            return self.refuse(node, "else after a loop; write a flag")
        return f"for({self.pattern(node.target, False)} of {self.array(node.iter, True)}){{{self.body(node.body)}}}"

    def _Try(self, node: ast.Try) -> str:
        """One handler of ValueError, whose name stands for the sentence: only its text may be used."""
        handler = node.handlers[0] if len(node.handlers) == 1 else None
        if handler is None or node.orelse or node.finalbody or ast.unparse(handler.type or ast.Pass()) != "ValueError":
            return self.refuse(node, "try with one `except ValueError`, without else and finally")
        name = f"{self.scopes[-1][handler.name].js}=$e.message;" if handler.name else ""
        rest = f"if(!($e instanceof ValueError))throw $e;{name}{self.body(handler.body)}"
        return f"try{{{self.body(node.body)}}}catch($e){{{rest}}}"

    def _FunctionDef(self, node: ast.FunctionDef) -> str:
        """A function inside a function."""
        if node.decorator_list:
            self.refuse(node, "a decorator; only @dataclass and @property are known")
        signature = self.program.signature(self.module.path, node.args)
        self.scopes[-1][node.name].signature = signature
        return f"{self.scopes[-1][node.name].js}={self.function(node, signature, '=>')};"

    def function(self, node: ast.FunctionDef, signature: Signature, arrow: str = "") -> str:
        """Parameters and body; names that it binds are declared first, because Python has no blocks."""
        start = ""
        defaults = {name: self.write(value) for name, value in signature.defaults.items()}
        bound = [name for name in assigned(node.body) if name not in {*signature.names, signature.rest}]
        method = self.owner is not None and not arrow
        self.enter(
            [*signature.names, *([signature.rest] if signature.rest else []), *bound],
            {"self": Local("this")} if method else None,
        )
        names = {name: local.js for name, local in self.scopes[-1].items()}
        parameters = [names[name] + (f"={defaults[name]}" if name in defaults else "") for name in signature.names]
        if signature.rest:
            parameters.append(f"...{names[signature.rest]}")
            start = f"$mark({names[signature.rest]});"
        for part in ast.walk(node):
            if isinstance(part, (ast.Nonlocal, ast.Global, ast.Yield, ast.YieldFrom, ast.Await)):
                self.refuse(part, f"{type(part).__name__.lower()}; hand values in and return them")
        local = f"let {','.join(names[name] for name in bound)};" if bound else ""
        text = f"({','.join(parameters)}){arrow}{{{start}{local}{self.body(node.body)}return null}}"
        self.scopes.pop()
        return re.sub(r"(return [^;{}]*;)return null}$", r"\1}", text)

    # ---- the top level ----
    def script(self) -> str:
        return "\n".join(filter(None, map(self.top, self.module.tree.body)))

    def top(self, node: ast.stmt) -> str:
        names = self.module.names
        if isinstance(node, ast.FunctionDef):
            if node.decorator_list:
                self.refuse(node, "a decorator; only @dataclass and @property are known")
            return f"function {names[node.name].js}{self.function(node, names[node.name].signature)}"
        if isinstance(node, ast.ClassDef):
            return self.classliteral(node)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_type_alias(node):
            return ""
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return ""
        target = (
            node.target if isinstance(node, ast.AnnAssign) else node.targets[0] if isinstance(node, ast.Assign) else None
        )
        if target is None or node.value is None or not isinstance(target, (ast.Name, ast.Tuple)):
            return self.refuse(node, "the top level of a module holds constants, functions and classes")
        if isinstance(target, ast.Name):
            return f"const {names[target.id].js}={self.write(node.value)};"
        return f"const [{','.join(names[part.id].js for part in target.elts)}]=$unpack({self.array(node.value)},{len(target.elts)});"

    def classliteral(self, node: ast.ClassDef) -> str:
        """A class; a dataclass gets its constructor, and a frozen one cannot change."""
        known = self.module.names[node.name]
        marks = {ast.unparse(mark.func if isinstance(mark, ast.Call) else mark): mark for mark in node.decorator_list}
        options = {
            k.arg: getattr(k.value, "value", None)
            for mark in marks.values()
            if isinstance(mark, ast.Call)
            for k in mark.keywords
        }
        if set(marks) - {"dataclass"} or set(options) - {"frozen", "slots", "kw_only", "eq", "repr"}:
            self.refuse(node, "a class is plain or a @dataclass with frozen, slots, eq, repr or kw_only")
        self.owner = known
        parts, compared, starts = [], [], []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and marks:
                starts.append(part.target.id)
                unequal = isinstance(part.value, ast.Call) and any(k.arg == "compare" for k in part.value.keywords)
                compared += [] if unequal else [part.target.id]
            elif isinstance(part, ast.FunctionDef):
                parts.append(self.member(part, known))
            elif (
                not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
                and "__slots__" not in ast.unparse(part)[:9]
            ):
                self.refuse(part, "a class holds fields, methods and properties")
        if marks:
            defaults = {name: self.default(value) for name, value in known.signature.defaults.items()}
            short = {name: short_name(place) for place, name in enumerate(starts)}
            parameters = ",".join(short[name] + (f"={defaults[name]}" if name in defaults else "") for name in starts)
            assigned = "".join(f"this.{MEMBER}{name}={short[name]};" for name in starts)
            frozen = "Object.freeze(this)" if options.get("frozen") else ""
            fields = f"static $fields={members(starts)};"
            if options.get("eq") is False:
                fields += "static $compared=0;"
            elif compared != starts:
                fields += f"static $compared={members(compared)};"
            parts.insert(0, f"{fields}constructor({parameters}){{{assigned}{frozen}}}")
        self.owner = None
        return f"class {known.js}{{{''.join(parts)}}}"

    def default(self, value: ast.expr) -> str:
        """The default of a field."""
        factory = factory_of(value)
        if factory is None:
            return self.write(value)
        return EMPTY[factory] if factory in EMPTY else self.refuse(value, f"default_factory is one of {', '.join(EMPTY)}")

    def member(self, node: ast.FunctionDef, known: Known) -> str:
        decorators = [ast.unparse(mark) for mark in node.decorator_list]
        if decorators not in ([], ["property"]) or (node.name.startswith("__") and node.name != "__init__"):
            self.refuse(node, f"{node.name}: only __init__, methods and @property are translated")
        signature = known.signature if node.name == "__init__" else known.methods.get(node.name) or Signature([])
        text = self.function(node, signature)
        if node.name == "__init__":
            return "constructor" + text.removesuffix("return null}") + ("}" if text.endswith("return null}") else "")
        return f"{'get ' if decorators else ''}{MEMBER}{node.name}{text}"


def shorten(code: str) -> str:
    """The names made as short as they are frequent."""
    for mark, letters, sign in MARKS:
        counts = Counter(re.findall(rf"{mark}(\w+)", code))
        short = (first + second for second in ("", *string.ascii_letters, *string.digits) for first in letters)
        names = {name: sign + (name if name in KEPT else next(short)) for name, _ in counts.most_common()}
        code = re.sub(rf"{mark}(\w+)", lambda found: names[found[1]], code)
    return code


def translate(entries: Sequence[str], read: Callable[[str], str], runtime: str) -> str:
    """The script of the modules at `entries` (paths; `read` gives their text) and of what they import, after `runtime`.

    It ends by returning an object of the entries' public functions, and `$in_`, which makes plain objects into
    dictionaries. Raises `DataErrors` with every refusal.
    """
    program = Program(read, entries)
    modules = [program.load(path) for path in entries]
    code = "\n".join(Writer(program, module).script() for module in program.modules.values())
    if program.findings:
        raise DataErrors(program.findings)
    public = {
        node.name: module.names[node.name].js
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    }
    exports = "".join(f"{name}:$export({js})," for name, js in public.items())
    return shorten(f"{runtime}{code}\nreturn {{{exports}$in_}};\n")
