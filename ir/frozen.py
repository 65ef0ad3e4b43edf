"""Frozen classes, as ``attrs.frozen`` makes them, in half the time.

For every class attrs writes and compiles an ``__eq__``, a ``__hash__`` and a ``__repr__``, at every start of a process.
Here all classes share one of each, which goes through the fields. Those are slower, so ``attrs.frozen`` remains for
classes that are compared or hashed in loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attrs import frozen
else:
    import attrs

    def frozen(cls=None, *, eq=True, **options):
        """Return the class with fields, as ``attrs.frozen`` does."""
        if cls is None:
            return lambda cls: frozen(cls, eq=eq, **options)
        own = vars(cls)
        if eq and "__eq__" not in own:
            cls.__eq__, cls.__hash__ = _equal, _hash
        if "__repr__" not in own:
            cls.__repr__ = _repr
        return attrs.frozen(cls, eq=False, repr=False, **options)


__all__ = ["frozen"]


def _equal(self: Any, other: Any) -> Any:  # Any: of every class that `frozen` makes; NotImplemented of others
    if other.__class__ is not self.__class__:
        return NotImplemented
    return all(getattr(self, f.name) == getattr(other, f.name) for f in self.__attrs_attrs__ if f.eq)


def _hash(self: Any) -> int:  # Any: as above
    return hash((type(self), *(getattr(self, f.name) for f in self.__attrs_attrs__ if f.eq)))


def _repr(self: Any) -> str:  # Any: as above
    fields = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in self.__attrs_attrs__ if f.repr)
    return f"{type(self).__qualname__.rpartition('>.')[2]}({fields})"
