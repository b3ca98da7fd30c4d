"""Writes an expression of the estimator's Python in JavaScript, or refuses it; translator.py writes what stands round it.

portable.py describes the subset. portable.js holds what operators, builtins and containers mean in the script; the names of
its helpers begin with $.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from macros.program import MEMBER, TYPES, Known, Module, Program, Signature, assigned

# Python's name → the runtime's, and the keywords that may follow, in the runtime's order.
BUILTINS: dict[str, tuple[str, tuple[str, ...]]] = {
    "abs": ("$abs", ()),
    "all": ("$all", ()),
    "any": ("$any", ()),
    "bool": ("$true", ()),
    "chr": ("$chr", ()),
    "dict": ("$dict", ()),
    "enumerate": ("$enumerate", ("start",)),
    "float": ("$float", ()),
    "id": ("$id", ()),
    "int": ("$whole", ()),
    "isinstance": ("$is", ()),
    "len": ("$len", ()),
    "list": ("$list", ()),
    "max": ("$best", ("key", "default")),
    "min": ("$best", ("key", "default")),
    "range": ("$range", ()),
    "reversed": ("$reversed", ()),
    "set": ("$set", ()),
    "sorted": ("$sorted", ("key", "reverse")),
    "str": ("$str", ()),
    "sum": ("$sum", ()),
    "tuple": ("$tuple", ()),
    "zip": ("$zip", ()),
}
EMPTY = {"dict": "$dict()", "list": "[]", "set": "$set()", "tuple": "$t()"}
METHODS = (
    "add append copy count endswith extend get index insert items join keys partition pop remove removeprefix removesuffix"
    " replace rpartition setdefault split startswith update values"
).split()
OPERATORS = {
    ast.Add: "$add",
    ast.Sub: "$sub",
    ast.Mult: "$mul",
    ast.Div: "$div",
    ast.FloorDiv: "$floordiv",
    ast.Mod: "$mod",
    ast.Pow: "$pow",
}
# The same on floats, which may pass 2^53: no check for whole numbers, no lists and texts.
FLOAT_OPERATORS = {ast.Add: "$fadd", ast.Sub: "$fsub", ast.Mult: "$fmul"}
COMPARISONS = {ast.Lt: "$lt", ast.LtE: "$le", ast.Gt: "$gt", ast.GtE: "$ge", ast.Eq: "$eq", ast.In: "$in"}
NEGATIONS = {ast.NotEq: ast.Eq, ast.NotIn: ast.In, ast.IsNot: ast.Is}


def is_float(node: ast.expr) -> bool:
    """Whether an expression is a float whatever its names hold: a float constant, float(…), or arithmetic with one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "float"
    return isinstance(node, ast.BinOp) and (is_float(node.left) or is_float(node.right))


def short_name(number: int) -> str:
    """0 is a, 25 z, 26 a1."""
    return "abcdefghijklmnopqrstuvwxyz"[number % 26] + (str(number // 26) if number >= 26 else "")


def literal(value: Any) -> str:
    """JSON that is safe in any script; without $, which marks the runtime's names."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        .replace("<", "\\u003c")
        .replace("$", "\\u0024")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def members(names: Iterable[str]) -> str:
    """Attributes by name."""
    return literal([MEMBER + name for name in names])


def is_simple(node: ast.expr) -> bool:
    """Whether evaluating it twice does no harm."""
    if isinstance(node, ast.Attribute):
        return is_simple(node.value)
    return isinstance(node, (ast.Name, ast.Constant))


@dataclass
class Local:
    """A name of a function: its short name in the script and, for a function inside it, the parameters."""

    js: str
    signature: Signature | None = None


class Expressions:
    """The expressions of one module, with the names of the functions round them."""

    def __init__(self, program: Program, module: Module) -> None:
        self.program, self.module = program, module
        self.scopes: list[dict[str, Local]] = []
        self.owner: Known | None = None

    def refuse(self, node: ast.AST, message: str) -> str:
        return self.program.refuse(self.module.path, node, message)

    def find(self, name: str) -> Known | None:
        """The module's name, unless a local one hides it."""
        return None if self.local(name) else self.module.names.get(name)

    def local(self, name: str) -> Local | None:
        """The innermost function's or comprehension's name."""
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), None)

    def enter(self, names: Iterable[str], own: Mapping[str, Local] | None = None) -> None:
        """Begin a scope; its names become a, b, c … after those of the scopes around it."""
        count = sum(len(scope) for scope in self.scopes)
        self.scopes.append({name: Local(short_name(count + i)) for i, name in enumerate(names)} | dict(own or {}))

    # ---- expressions ----
    def write(self, node: ast.expr) -> str:
        """Any expression."""
        method = getattr(self, "_" + type(node).__name__, None)
        return (
            method(node)
            if method
            else self.refuse(node, f"{ast.unparse(node)[:60]!r} ({type(node).__name__}) is not translated")
        )

    def test(self, node: ast.expr) -> str:
        """An expression of which only the truth matters."""
        if isinstance(node, ast.BoolOp):
            return f"({('&&' if isinstance(node.op, ast.And) else '||').join(map(self.test, node.values))})"
        return self.write(node) if self.is_bool(node) else f"$true({self.write(node)})"

    def is_bool(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BoolOp):
            return all(map(self.is_bool, node.values))
        if isinstance(node, ast.UnaryOp):
            return isinstance(node.op, ast.Not)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in ("any", "all", "isinstance")
        return isinstance(node, ast.Compare) or (isinstance(node, ast.Constant) and isinstance(node.value, bool))

    def _Constant(self, node: ast.Constant) -> str:
        value = node.value
        if isinstance(value, int) and abs(value) > 2**53:
            return self.refuse(node, "a whole number above 2^53; the browser would round it")
        if value is None or isinstance(value, (bool, int, str)):
            return literal(value)
        if isinstance(value, float) and abs(value) < float("inf"):
            return repr(value)
        return self.refuse(node, f"{type(value).__name__} constants are not translated")

    def _Name(self, node: ast.Name) -> str:
        if local := self.local(node.id):
            return local.js
        if node.id in BUILTINS and node.id not in self.module.names:
            return self.refuse(node, f"{node.id} as a value; call it in a lambda")
        return self.value(node, self.module.names.get(node.id), node.id)

    def value(self, node: ast.expr, known: Known | None, name: str) -> str:
        """A function or constant of the estimator."""
        if known is None:
            return self.refuse(node, f"there is no {name!r} in the browser; builtins are {', '.join(BUILTINS)}")
        if known.kind in ("function", "value"):
            return known.js
        return self.refuse(node, f"{name} as a value; only functions and constants are values")

    def _Attribute(self, node: ast.Attribute) -> str:
        own = isinstance(node.value, ast.Name) and node.value.id == "self" and self.owner is not None
        known = self.find(node.value.id) if isinstance(node.value, ast.Name) else None
        if known is not None and known.kind == "module":
            return self.value(node, self.program.modules[known.js].names.get(node.attr), ast.unparse(node))
        if own and node.attr in self.owner.methods:
            return f'$bind(this,"{MEMBER}{node.attr}")'
        if node.attr not in self.program.attributes:
            return self.refuse(
                node, f"no translated class has an attribute {node.attr!r}; methods are called or bound to self"
            )
        return f"{self.write(node.value)}.{MEMBER}{node.attr}"

    def _BinOp(self, node: ast.BinOp) -> str:
        if type(node.op) not in OPERATORS:
            return self.refuse(node, f"the operator in {ast.unparse(node)[:60]!r}; write it with + - * / // % **")
        operators = FLOAT_OPERATORS if type(node.op) in FLOAT_OPERATORS and is_float(node) else OPERATORS
        return f"{operators[type(node.op)]}({self.write(node.left)},{self.write(node.right)})"

    def _UnaryOp(self, node: ast.UnaryOp) -> str:
        if isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node.op, ast.USub):
            return self.write(node.operand) if ast.unparse(node.operand) == "0" else f"$neg({self.write(node.operand)})"
        return self.refuse(node, "only - and not stand before a value")

    def _BoolOp(self, node: ast.BoolOp) -> str:
        if self.is_bool(node):
            return self.test(node)
        text = self.write(node.values[-1])
        for value in reversed(node.values[:-1]):
            text = (
                f"($true($={self.write(value)})?{text}:$)"
                if isinstance(node.op, ast.And)
                else f"($true($={self.write(value)})?$:{text})"
            )
        return text

    def _Compare(self, node: ast.Compare) -> str:
        terms = [node.left, *node.comparators]
        for term in terms[1:-1]:
            if not is_simple(term):
                self.refuse(term, "the middle of a chained comparison is computed once; give it a name")
        parts = [self.compare(*each) for each in zip(terms, node.ops, terms[1:])]
        return parts[0] if len(parts) == 1 else f"({'&&'.join(parts)})"

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        if type(op) in NEGATIONS:
            return "!" + self.compare(left, NEGATIONS[type(op)](), right)
        plain = any(isinstance(x, ast.Constant) and isinstance(x.value, (str, type(None))) for x in (left, right))
        identical = isinstance(op, ast.Is) or (isinstance(op, ast.Eq) and plain)
        if identical:
            return f"({self.write(left)}==={self.write(right)})"
        return f"{COMPARISONS[type(op)]}({self.write(left)},{self.write(right)})"

    def _IfExp(self, node: ast.IfExp) -> str:
        return f"({self.test(node.test)}?{self.write(node.body)}:{self.write(node.orelse)})"

    def items(self, nodes: Sequence[ast.expr]) -> str:
        """Elements or arguments, with * spread out."""
        return ",".join(f"...{self.array(n.value, True)}" if isinstance(n, ast.Starred) else self.write(n) for n in nodes)

    def _Tuple(self, node: ast.Tuple) -> str:
        return f"$t({self.items(node.elts)})"

    def _List(self, node: ast.List) -> str:
        return f"[{self.items(node.elts)}]"

    def _Set(self, node: ast.Set) -> str:
        return f"$set([{self.items(node.elts)}])"

    def _Dict(self, node: ast.Dict) -> str:
        pairs = (
            f"...$methods.items({self.write(value)})" if key is None else f"[{self.write(key)},{self.write(value)}]"
            for key, value in zip(node.keys, node.values)
        )
        return f"$dict([{','.join(pairs)}])"

    def _Subscript(self, node: ast.Subscript) -> str:
        if not isinstance(node.slice, ast.Slice):
            return f"$at({self.write(node.value)},{self.write(node.slice)})"
        start, stop, step = (
            "null" if part is None else self.write(part) for part in (node.slice.lower, node.slice.upper, node.slice.step)
        )
        back = node.slice.step is not None
        if back and (ast.unparse(node.slice.step) != "-1" or start != "null" or stop != "null"):
            return self.refuse(node, "a slice with a step; only [::-1] has one")
        return f"$slice({self.write(node.value)},{start},{stop}{',true' if back else ''})"

    def _Lambda(self, node: ast.Lambda) -> str:
        signature = self.program.signature(self.module.path, node.args)
        self.enter(signature.names)
        text = f"(({','.join(local.js for local in self.scopes[-1].values())})=>{self.write(node.body)})"
        self.scopes.pop()
        return text

    def _JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                parts.append(literal(value.value))
            elif isinstance(value, ast.FormattedValue) and value.format_spec is None and value.conversion in (-1, 114):
                parts.append(f"{'$repr' if value.conversion == 114 else '$str'}({self.write(value.value)})")
            else:
                return self.refuse(node, "a format in an f-string; write {x} or {x!r}, and figures with estimator/units.py")
        return f"({'+'.join(parts)})" if len(parts) > 1 else parts[0] if parts else '""'

    # ---- comprehensions ----
    def comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, last: str, element: Callable[[], str]
    ) -> str:
        """The array of the elements; `last` is the array method that takes the innermost step."""
        depth, texts = 0, []
        for generator in node.generators:
            source = self.array(generator.iter, True)
            self.enter(assigned([generator.target]))
            depth += 1
            target = self.pattern(generator.target, True)
            texts.append((source + "".join(f".filter({target}=>{self.test(test)})" for test in generator.ifs), target))
        text = element()
        for step, (source, target) in zip([last, *["flatMap"] * len(texts)], reversed(texts)):
            text = f"{source}.{step}({target}=>{text})"
        del self.scopes[-depth:]
        return text

    def array(self, node: ast.expr, any_order: bool = False) -> str:
        """What is gone through once: a generator becomes an array at once."""
        if isinstance(node, (ast.GeneratorExp, ast.ListComp)):
            return self.comprehension(node, "map", lambda: self.write(node.elt))
        if isinstance(node, (ast.Tuple, ast.List)):
            return f"[{self.items(node.elts)}]"
        return f"$iter({self.write(node)})" if any_order else self.write(node)

    def pattern(self, target: ast.expr, fresh: bool) -> str:
        """What a loop binds; `fresh` as parameters of an arrow function."""
        if isinstance(target, ast.Name):
            return self.scopes[-1][target.id].js
        if isinstance(target, ast.Tuple):
            parts = (
                "" if isinstance(part, ast.Name) and part.id == "_" and fresh else self.pattern(part, False)
                for part in target.elts
            )
            return f"([{','.join(parts)}])" if fresh else f"[{','.join(parts)}]"
        return self.refuse(target, "a loop binds names or tuples of names")

    def _ListComp(self, node: ast.ListComp) -> str:
        return self.array(node)

    def _SetComp(self, node: ast.SetComp) -> str:
        return f"$set({self.comprehension(node, 'map', lambda: self.write(node.elt))})"

    def _DictComp(self, node: ast.DictComp) -> str:
        return f"$dict({self.comprehension(node, 'map', lambda: f'[{self.write(node.key)},{self.write(node.value)}]')})"

    def _GeneratorExp(self, node: ast.GeneratorExp) -> str:
        return self.refuse(node, "a generator that is kept; write a list, or hand it to a builtin at once")

    # ---- calls ----
    def _Call(self, node: ast.Call) -> str:
        if isinstance(node.func, ast.Attribute):
            return self.method_call(node, node.func)
        if not isinstance(node.func, ast.Name):
            return self.refuse(node, "call a name or a method")
        name = node.func.id
        if local := self.local(name):
            return f"{local.js}({self.arguments(node, local.signature, name)})"
        known = self.module.names.get(name)
        if known is None and name in BUILTINS:
            return self.builtin(node, name)
        if known is not None and known.kind == "dataclasses":
            return self.dataclass_call(node, name)
        return self.known_call(node, known, name)

    def known_call(self, node: ast.Call, known: Known | None, name: str) -> str:
        """A function or class of the estimator."""
        if known is None or known.kind not in ("function", "class"):
            return self.refuse(node, f"there is no function {name!r} in the browser; builtins are {', '.join(BUILTINS)}")
        return f"{'new ' if known.kind == 'class' else ''}{known.js}({self.arguments(node, known.signature, name)})"

    def arguments(self, node: ast.Call, signature: Signature | None, name: str) -> str:
        """Arguments in the order of the parameters, refused if they do not fit."""
        text = self.fitting(node, signature)
        if text is None:
            expected = (
                f"its parameters are {', '.join(signature.names) or 'none'}"
                if signature
                else "a function in a variable takes no keywords"
            )
            return self.refuse(node, f"the arguments of {name} do not fit; {expected}")
        return text

    def fitting(self, node: ast.Call, signature: Signature | None) -> str | None:
        """Arguments in the order of the parameters, or None if they do not fit."""
        if signature is None or any(isinstance(arg, ast.Starred) for arg in node.args):
            return self.items(node.args) if not node.keywords else None
        given: dict[str, ast.expr] = dict(zip(signature.names, node.args))
        order = list(range(len(given)))
        for keyword in node.keywords:
            if keyword.arg not in signature.names or keyword.arg in given:
                return None
            given[keyword.arg] = keyword.value
            order.append(signature.names.index(keyword.arg))
        calls = any(isinstance(part, ast.Call) for keyword in node.keywords for part in ast.walk(keyword.value))
        too_many = len(node.args) > len(signature.names) and not signature.rest
        missing = any(name not in given and name not in signature.defaults for name in signature.names)
        if too_many or missing:
            return None
        texts = [self.write(given[name]) if name in given else "undefined" for name in signature.names]
        if calls and order != sorted(order):
            # Python computes the values as they are written: hand them on in the order of the parameters.
            written = ",".join(texts[i] for i in order)
            handed = ",".join(f"_{i}" if i in order else "undefined" for i in range(len(texts)))
            return f"...(({','.join(f'_{i}' for i in order)})=>[{handed}])({written})"
        texts += map(self.write, node.args[len(signature.names) :])
        while texts and texts[-1] == "undefined":
            texts.pop()
        return ",".join(texts)

    def method_call(self, node: ast.Call, func: ast.Attribute) -> str:
        name = func.attr
        if isinstance(func.value, ast.Name):
            known = self.find(func.value.id)
            if known is not None and known.kind == "math":
                if name not in ("ceil", "floor"):
                    return self.refuse(
                        node, f"math.{name} may differ by a bit in the browser; only ceil and floor are equal"
                    )
                return f"${name}({self.items(node.args)})"
            if known is not None and known.kind == "module":
                return self.known_call(node, self.program.modules[known.js].names.get(name), ast.unparse(func))
            if func.value.id == "dict" and name == "fromkeys" and len(node.args) == 1:
                return f"$fromkeys({self.builtin_arguments(node, ())})"
        classes = [known for known in self.program.classes if name in known.methods]
        if isinstance(func.value, ast.Name) and func.value.id == "self" and self.owner is not None:
            classes = [self.owner] if name in self.owner.methods else []
        candidates = {self.fitting(node, known.methods[name]) for known in classes} - {None}
        receiver = self.write(func.value)
        if name in METHODS and (not classes or classes != [self.owner]):
            values = self.builtin_arguments(node, ())
            if not classes:
                return f"$methods.{name}({receiver}{',' * bool(values)}{values})"
            return f'$call({receiver},"{name}","{MEMBER}{name}"{"," * bool(values)}{values})'
        if len(candidates) != 1:
            says = (
                "more than one class has it, so pass by position"
                if candidates
                else f"methods of builtins are {', '.join(METHODS)}"
            )
            return self.refuse(node, f"no method {name!r} takes these arguments; {says}")
        return f"{receiver}.{MEMBER}{name}({candidates.pop()})"

    def builtin_arguments(self, node: ast.Call, keywords: tuple[str, ...]) -> str:
        """Positional arguments, a generator as an array, then the allowed keywords by position."""
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        for name in given:
            if name not in keywords:
                self.refuse(
                    node,
                    f"the keyword {name}; {'allowed are ' + ', '.join(keywords) if keywords else 'there are none here'}",
                )
        texts = [self.array(arg) if isinstance(arg, ast.GeneratorExp) else self.items([arg]) for arg in node.args]
        texts += [self.write(given[name]) if name in given else "undefined" for name in keywords]
        while texts and texts[-1] == "undefined":
            texts.pop()
        return ",".join(texts)

    def builtin(self, node: ast.Call, name: str) -> str:
        js, keywords = BUILTINS[name]
        args = node.args
        if not args and name in EMPTY and not node.keywords:
            return EMPTY[name]
        if name == "bool" and len(args) == 1:
            return self.test(args[0]) if self.is_bool(args[0]) else f"$true({self.write(args[0])})"
        if name in ("any", "all") and len(args) == 1:
            step = "some" if name == "any" else "every"
            if isinstance(args[0], ast.GeneratorExp):
                return (
                    self.comprehension(args[0], step, lambda: self.test(args[0].elt))
                    if len(args[0].generators) == 1
                    else self.refuse(node, f"{name} over two loops; write a function")
                )
            return f"$iter({self.write(args[0])}).{step}(x=>$true(x))"
        if name == "isinstance" and len(args) == 2:
            kinds = args[1].elts if isinstance(args[1], ast.Tuple) else [args[1]]
            return f"$is({self.write(args[0])},{','.join(map(self.kind, kinds))})"
        if name in ("max", "min"):
            rest = self.builtin_arguments(ast.Call(node.func, [], node.keywords), keywords)
            values = self.array(args[0], True) if len(args) == 1 else f"[{self.items(args)}]"
            return f"$best({'$gt' if name == 'max' else '$lt'},{values}{',' * bool(rest)}{rest})"
        if name == "enumerate" and len(args) == 2:
            keywords = ()
        if not args or any(isinstance(arg, ast.Starred) for arg in args) and name != "zip":
            return self.refuse(node, f"{name} with these arguments")
        return f"{js}({self.builtin_arguments(node, keywords)})"

    def kind(self, node: ast.expr) -> str:
        """The second argument of isinstance."""
        known = self.find(node.id) if isinstance(node, ast.Name) else None
        if known is not None and known.kind == "class":
            return known.js
        if known is None and isinstance(node, ast.Name) and node.id in TYPES:
            return f'"{node.id}"'
        return self.refuse(node, f"isinstance knows {', '.join(TYPES)} and the estimator's classes")

    def dataclass_call(self, node: ast.Call, name: str) -> str:
        if name == "replace" and len(node.args) == 1:
            changes = ",".join(f"{MEMBER}{keyword.arg}:{self.write(keyword.value)}" for keyword in node.keywords)
            return f"$replace({self.write(node.args[0])},{{{changes}}})"
        if name == "fields" and len(node.args) == 1:
            known = self.find(node.args[0].id) if isinstance(node.args[0], ast.Name) else None
            if known is not None and known.kind == "class":
                return f"$fields({literal(known.signature.names)})"
        return self.refuse(node, f"{name} stands in a dataclass only")
