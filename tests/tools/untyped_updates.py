"""Find updates of records that the type checker cannot check, because the fields come from a dictionary.

These are ``model_copy(update=…)``, ``model_construct`` and ``**record.model_dump()``. The type of an updated record
is inferred from the annotations in the product.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_WRAPPERS = {"Annotated", "Final", "ClassVar", "Awaitable", "Coroutine", "Sequence", "tuple", "list", "Iterable"}
_WRAPPERS |= {"Iterator", "Collection", "frozenset", "set", "Generator", "AsyncIterator", "deque"}


@dataclass(frozen=True)
class UntypedUpdate:
    """An update of a record that the type checker does not check."""

    path: str
    line: int
    kind: str
    record: str | None
    """The class of the updated record, or ``None`` if it is unknown."""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} of {self.record or 'an unknown type'}: use a named method"


@dataclass
class TypeIndex:
    """The annotated types in the product: of attributes and methods by class, and of functions by name."""

    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    functions: dict[str, set[str]] = field(default_factory=dict)
    methods: dict[str, set[str]] = field(default_factory=dict)

    def add(self, tree: ast.Module) -> None:
        """Add the classes and functions in the syntax tree of a module."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                self._add_class(node)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (name := class_of(node.returns)):
                self.functions.setdefault(node.name, set()).add(name)

    def _add_class(self, node: ast.ClassDef) -> None:
        attributes = self.attributes.setdefault(node.name, {})
        self.bases[node.name] = [name for base in node.bases if (name := class_of(base))]
        for part in node.body:
            name = None
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                key, name = part.target.id, class_of(part.annotation)
            elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                key, name = part.name, class_of(part.returns)
                name = node.name if name == "Self" else name
                attributes.update(_attributes_set_in(part))
            if name:
                attributes[key] = name
                self.methods.setdefault(key, set()).add(name)

    def attribute_of(self, owner: str, name: str) -> str | None:
        """Return the type of the attribute ``name`` of the class ``owner`` or its bases, or ``None`` if unknown."""
        if name in self.attributes.get(owner, {}):
            return self.attributes[owner][name]
        types = (self.attribute_of(base, name) for base in self.bases.get(owner, ()))
        return next((kind for kind in types if kind), None)


def _attributes_set_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Mapping[str, str]:
    """Return the types of the attributes that a method sets on ``self``, by name.

    The type comes from an annotation, or from the annotated parameter that is assigned.
    """
    parameters = _parameters(function)
    attributes: dict[str, str] = {}
    for node in ast.walk(function):
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation):
                kind = class_of(annotation)
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=given)
            ):
                kind = parameters.get(given)
            case _:
                continue
        if kind:
            attributes[name] = kind
    return attributes


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return {parameter.arg: name for parameter in given if (name := class_of(parameter.annotation))}


def class_of(annotation: ast.expr | None) -> str | None:
    """Return the name of the class in an annotation, or ``None`` if there is none.

    For a sequence, return the class of its items. For ``X | None``, return ``X``.
    """
    match annotation:
        case ast.Name(id=name):
            return name
        case ast.Constant(value=str() as text):
            return class_of(ast.parse(text, mode="eval").body)
        case ast.Attribute(attr=name):
            return name
        case ast.BinOp(left=left, right=right, op=ast.BitOr()):
            return class_of(left if not _is_none(left) else right)
        case ast.Subscript(value=outer, slice=inner) if class_of(outer) in _WRAPPERS:
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return class_of(parts[-1] if class_of(outer) == "Coroutine" else parts[0])
        case ast.Subscript(value=outer, slice=ast.Tuple(elts=[*_, last])) if class_of(outer) in {"dict", "Mapping"}:
            return class_of(last)
        case ast.Subscript(value=outer):
            return class_of(outer)
        case _:
            return None


def _is_none(annotation: ast.expr) -> bool:
    return isinstance(annotation, ast.Constant) and annotation.value is None


def find_untyped_updates(path: str, source: str, index: TypeIndex) -> list[UntypedUpdate]:
    """Return the untyped updates in one file, except those of ``self`` in a method of the record."""
    updates: list[UntypedUpdate] = []
    _Scope(index, path, updates).visit(ast.parse(source))
    return updates


class _Scope(ast.NodeVisitor):
    """A visitor that finds untyped updates and tracks the types of the names in each scope."""

    def __init__(self, index: TypeIndex, path: str, updates: list[UntypedUpdate]) -> None:
        self._index, self._path, self._found = index, path, updates
        self._names: dict[str, str] = {}
        self._owner: str | None = None

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        before, self._owner = self._owner, node.name
        self.generic_visit(node)
        self._owner = before

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        before, self._names = self._names, {**self._names, **_parameters(node)}
        if self._owner is not None and node.args.args and node.args.args[0].arg == "self":
            self._names["self"] = self._owner
        for part in _in_order(node):
            self._bind(part)
        self.generic_visit(node)
        self._names = before

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - ast.NodeVisitor calls it by this name

    def _bind(self, node: ast.AST) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                kind = self.type_of(value)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                kind = class_of(annotation)
            case (
                ast.For(target=ast.Name(id=name), iter=source)
                | ast.AsyncFor(target=ast.Name(id=name), iter=source)
                | ast.comprehension(target=ast.Name(id=name), iter=source)
            ):
                kind = self.type_of(source)
            case _:
                return
        if kind:
            self._names[name] = kind
        else:
            self._names.pop(name, None)

    def visit_Call(self, node: ast.Call) -> None:
        match node.func:
            case ast.Attribute(value=receiver, attr="model_copy") if any(k.arg == "update" for k in node.keywords):
                self._note(node, "model_copy(update=)", receiver)
            case ast.Attribute(value=receiver, attr="model_construct"):
                self._note(node, "model_construct", receiver)
            case _:
                pass
        for keyword in node.keywords:
            match keyword:
                case ast.keyword(arg=None, value=ast.Call(func=ast.Attribute(value=dumped, attr="model_dump"))):
                    self._note(node, "**model_dump()", dumped)
        self.generic_visit(node)

    def _note(self, node: ast.Call, kind: str, receiver: ast.expr) -> None:
        if isinstance(receiver, ast.Name) and receiver.id == "self":
            return  # a named method of the record
        self._found.append(UntypedUpdate(self._path, node.lineno, kind, self.type_of(receiver)))

    def type_of(  # noqa: C901, PLR0912 - a row for each kind of expression
        self, value: ast.expr
    ) -> str | None:
        """Return the class of an expression, or of its items if it is a sequence.

        Return ``None`` if the class cannot be inferred from annotations.
        """
        match value:
            case ast.Name(id=name):
                return self._names.get(name) or (name if name in self._index.attributes else None)
            case ast.Await(value=awaited):
                return self.type_of(awaited)
            case ast.Attribute(value=owner, attr=name):
                kind = self.type_of(owner)
                return self._index.attribute_of(kind, name) if kind else None
            case ast.Call(func=ast.Attribute(attr="to_thread"), args=[ast.expr() as called, *_]):
                return self.type_of(ast.Call(func=called, args=[], keywords=[]))
            case ast.Call(
                func=ast.Name(id="tuple" | "list" | "sorted" | "reversed" | "next" | "min" | "max"), args=args
            ):
                return self.type_of(args[0]) if args else None
            case ast.Call(func=ast.Attribute(value=owner, attr="model_copy")):
                return self.type_of(owner)
            case ast.Call(func=ast.Attribute(value=owner, attr="values" | "get")):
                return self.type_of(owner)
            case ast.Call(func=ast.Name(id=name)):
                return self._returned(name)
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                kind = self.type_of(owner)
                if kind is not None and (returned := self._index.attribute_of(kind, name)):
                    return returned
                return kind if name.startswith("model_validate") else self._only(self._index.methods.get(name))
            case ast.Subscript(value=owner) | ast.Starred(value=owner):
                return self.type_of(owner)
            case ast.BoolOp(values=[first, *_]) | ast.IfExp(body=first):
                return self.type_of(first)
            case ast.GeneratorExp(elt=item) | ast.ListComp(elt=item):
                return self.type_of(item)
            case _:
                return None

    def _returned(self, name: str) -> str | None:
        return name if name in self._index.attributes else self._only(self._index.functions.get(name))

    @staticmethod
    def _only(kinds: set[str] | None) -> str | None:
        return next(iter(kinds)) if kinds and len(kinds) == 1 else None


def _in_order(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    """Yield the statements and assignment expressions in line order, and then the comprehensions."""
    nodes = [node for node in ast.walk(function) if isinstance(node, ast.stmt | ast.NamedExpr)]
    yield from sorted(nodes, key=lambda node: (node.lineno, node.col_offset))
    yield from (node for node in ast.walk(function) if isinstance(node, ast.comprehension))
