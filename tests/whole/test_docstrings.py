"""Every public name says what it is: all of ``__all__``, and the public methods of public classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

import attrs
import pytest
from places import ROOT

ROOMS = ("ir", "frontends", "passes", "backends", "collc")
#: classes whose methods somebody else names and describes, and who
THEIRS = {
    "Builder": "a method makes the node of the grammar's rule of the same name; grammar.lark is the description",
    "CollcGroup": "its methods are those of torch.distributed.ProcessGroup, which describes them",
    "CollcWork": "its methods are those of torch.distributed.Work, which describes them",
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@attrs.frozen
class Module:
    """A module's name, its tree and the names in its ``__all__``."""

    name: str
    tree: ast.Module
    public: tuple[str, ...]

    @classmethod
    def of(cls, name: str, text: str) -> Module:
        tree = ast.parse(text)
        listed = [n for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"]
        names = [c.value for n in listed for c in ast.walk(n.value) if isinstance(c, ast.Constant)]
        return cls(name, tree, tuple(names))


@cache
def modules() -> list[Module]:
    """Return all modules of the package."""
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [Module.of(str(path.relative_to(ROOT)), path.read_text("utf-8")) for path in paths]


def base_names(node: ast.ClassDef) -> Iterator[str]:
    """Yield the names of a class's bases, without what they are parametrized with."""
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        yield inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")


def decorators(node: Function) -> set[str]:
    """Return the last names of a function's decorators."""
    return {getattr(d, "attr", getattr(d, "id", "")) for d in node.decorator_list}


def methods(node: ast.ClassDef) -> Iterator[Function]:
    """Yield a class's public methods and properties, but for signatures that only type checkers read, and setters."""
    for child in node.body:
        if not isinstance(child, Function) or child.name.startswith("_"):
            continue
        if not decorators(child) & {"overload", "setter", "default", "validator"}:
            yield child


def described(name: str, node: ast.ClassDef, classes: Mapping[str, list[ast.ClassDef]]) -> bool:
    """Return whether a class, or one that it extends, describes a method."""
    if any(child.name == name and ast.get_docstring(child) for child in node.body if isinstance(child, Function)):
        return True
    bases = [base for known in base_names(node) for base in classes.get(known, ()) if base is not node]
    return any(described(name, base, classes) for base in bases)


def silent(all_modules: list[Module]) -> list[str]:
    """Return the places of public names that say nothing of themselves."""
    classes: dict[str, list[ast.ClassDef]] = {}
    for module in all_modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                classes.setdefault(node.name, []).append(node)
    found = []
    for module in all_modules:
        if not ast.get_docstring(module.tree):
            found.append(module.name)
        for node in module.tree.body:
            if not isinstance(node, Function | ast.ClassDef) or node.name not in module.public:
                continue
            if not ast.get_docstring(node):
                found.append(f"{module.name}: {node.name}")
            if isinstance(node, ast.ClassDef) and node.name not in THEIRS:
                unsaid = [m.name for m in methods(node) if not described(m.name, node, classes)]
                found += [f"{module.name}: {node.name}.{name}" for name in unsaid]
    return found


@pytest.mark.slow
def test_every_public_name_has_a_docstring() -> None:
    assert silent(modules()) == []


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("__all__ = []", "m.py"),
        ('"""M."""\n__all__ = ["f"]\ndef f(): ...', "m.py: f"),
        ('"""M."""\n__all__ = ["C"]\nclass C: ...', "m.py: C"),
        ('"""M."""\n__all__ = ["C"]\nclass C:\n    """C."""\n    def f(self): ...', "m.py: C.f"),
        ('"""M."""\n__all__ = ["C"]\nclass C:\n    """C."""\n    @property\n    def p(self): ...', "m.py: C.p"),
        (
            '"""M."""\n__all__ = ["D"]\nclass C:\n    def f(self): ...\nclass D(C):\n    """D."""\n    def f(self): 1',
            "m.py: D.f",
        ),
    ],
)
def test_a_planted_silence_is_found(text: str, place: str) -> None:
    assert silent([Module.of("m.py", text)]) == [place]


def test_what_a_base_describes_need_not_be_said_again() -> None:
    text = '"""M."""\n__all__ = ["D"]\nclass C:\n    def f(self):\n        """F."""\nclass D(C):\n    """D."""\n'
    text += "    def f(self): ...\n    def _own(self): ...\ndef _private(): ..."
    assert silent([Module.of("m.py", text)]) == []


@pytest.mark.slow
def test_those_that_others_describe_exist() -> None:
    known = {node.name for module in modules() for node in module.tree.body if isinstance(node, ast.ClassDef)}
    assert set(THEIRS) <= known
