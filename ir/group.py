"""Finite groups that act on a network. They turn the schedule of one rank into the schedules of all ranks.

A topology with a regular symmetry has a rank for every group element, with the number of the element; rank 0 is the
identity. Multiplying by any element on the left maps links to links. Cayley digraphs, with links from x to x*g for
every generator g, have this symmetry by construction.

All functions work on columns: ``multiply`` takes two arrays that broadcast.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from itertools import permutations
from math import factorial, prod

import attrs
import numpy as np

from .arrays import Array
from .frozen import frozen
from .linear import LINEAR_KINDS, codes, field_of, matrices_of, scaled
from .shown import counted

__all__ = [
    "GROUPS",
    "Direct",
    "Group",
    "Linear",
    "Metacyclic",
    "Mirrored",
    "Permutations",
    "Semidirect",
    "Translations",
    "Twisted",
    "build_group",
    "parse_group",
]


@frozen
class Group(ABC):
    """A finite group on the numbers 0 .. order-1, of which 0 is the identity.

    ``written`` is the group in the user's words, such as ``dihedral(4)``; empty if unknown. It does not affect
    equality.
    """

    written: str = attrs.field(default="", eq=False, repr=False, kw_only=True)

    @property
    @abstractmethod
    def order(self) -> int:
        """The number of elements."""

    @abstractmethod
    def multiply(self, a: Array | int, b: Array | int) -> Array:
        """Return the products ``a * b``, elementwise (int64); the arrays broadcast."""

    @abstractmethod
    def inverse(self, a: Array | int) -> Array:
        """Return the inverses, elementwise (int64)."""

    @property
    @abstractmethod
    def expression(self) -> str:
        """The group in the language, such as ``metacyclic(8, 4, 3)``; equal groups have equal expressions."""

    @property
    def shown(self) -> str:
        """The group as the user wrote it, for messages."""
        return self.written or self.expression

    def translate(self, ranks: Array | int, by: Array | int) -> Array:
        """Return the ranks multiplied by ``by`` on the left, which is a symmetry of a Cayley digraph."""
        return self.multiply(by, ranks)


@frozen
class _Vectors(Group):
    """A group whose elements are numbered as the vectors modulo ``shape``, last coordinate fastest.

    Each coordinate is an element of a group of its own: ``_product`` and ``_inverse`` are those of one coordinate.
    """

    shape: tuple[int, ...]

    @property
    def order(self) -> int:
        return prod(self.shape)

    @staticmethod
    @abstractmethod
    def _product(a: Array, b: Array, size: int) -> Array: ...

    @staticmethod
    @abstractmethod
    def _inverse(a: Array, size: int) -> Array: ...

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        result = np.zeros(np.broadcast(a, b).shape, dtype=np.int64)
        weight = 1
        for size in reversed(self.shape):
            result += self._product(a // weight % size, b // weight % size, size) * weight
            weight *= size
        return result

    def inverse(self, a: Array | int) -> Array:
        a = np.asarray(a, dtype=np.int64)
        result = np.zeros(a.shape, dtype=np.int64)
        weight = 1
        for size in reversed(self.shape):
            result += self._inverse(a // weight % size, size) * weight
            weight *= size
        return result


@frozen
class Translations(_Vectors):
    """The abelian group of vectors modulo ``shape``, last coordinate fastest; one size makes a cyclic group."""

    @staticmethod
    def _product(a: Array, b: Array, size: int) -> Array:
        return (a + b) % size

    @staticmethod
    def _inverse(a: Array, size: int) -> Array:
        return -a % size

    @property
    def expression(self) -> str:
        return f"abelian({', '.join(map(str, self.shape))})"


@frozen
class Mirrored(_Vectors):
    """The group that moves a torus of even sizes as the peers of Swing do; numbers are vectors modulo ``shape``.

    In each coordinate an even element a moves x to a + x, an odd one to a - x. So even coordinates move up where odd
    ones move down. In one dimension of size n it is the dihedral group of order n, numbered by the images of 0.
    """

    def __attrs_post_init__(self) -> None:
        if any(size < 2 or size % 2 for size in self.shape):
            raise ValueError(f"found sizes {', '.join(map(str, self.shape))}, needed even ones of at least 2")

    @staticmethod
    def _product(a: Array, b: Array, size: int) -> Array:
        product: Array = (a + (1 - 2 * (a % 2)) * b) % size
        return product

    @staticmethod
    def _inverse(a: Array, size: int) -> Array:
        inverse: Array = np.where(a % 2, a, -a % size)
        return inverse

    @property
    def expression(self) -> str:
        return f"mirrored({', '.join(map(str, self.shape))})"


@frozen
class Twisted(Group):
    """The abelian group of a twisted torus, whose sizes are k and 2k; numbers are vectors, last coordinate fastest.

    Vectors add with a carry: what leaves a coordinate of size k adds k to every coordinate of size 2k. It is the
    quotient of the vectors of integers by the lattice that twists the torus (Camara et al., Twisted Torus Topologies,
    2010).

    >>> int(Twisted((2, 4)).multiply(4, 4)), int(Twisted((2, 4)).inverse(4))
    (2, 6)
    """

    shape: tuple[int, ...]

    def __attrs_post_init__(self) -> None:
        short = min(self.shape, default=0)
        if short < 2 or set(self.shape) != {short, 2 * short}:
            raise ValueError(f"found sizes {', '.join(map(str, self.shape))}, needed k and 2k, k at least 2")

    @property
    def order(self) -> int:
        return prod(self.shape)

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        one, other = (self._vectors(np.asarray(each, dtype=np.int64)) for each in (a, b))
        return self._numbers([x + y for x, y in zip(one, other, strict=True)])

    def inverse(self, a: Array | int) -> Array:
        return self._numbers([-x for x in self._vectors(np.asarray(a, dtype=np.int64))])

    def _vectors(self, numbers: Array) -> list[Array]:
        """Return the coordinates of elements, an array for each."""
        found, weight = list[Array](), self.order
        for size in self.shape:
            weight //= size
            found.append(numbers // weight % size)
        return found

    def _numbers(self, vectors: Sequence[Array]) -> Array:
        """Return the elements of any vectors of integers."""
        short = min(self.shape)
        carry = sum(x // short for x, size in zip(vectors, self.shape, strict=True) if size == short)
        result = np.zeros(np.shape(vectors[0]), dtype=np.int64)
        for x, size in zip(vectors, self.shape, strict=True):
            result = result * size + (x % size if size == short else (x + short * carry) % size)
        return result

    @property
    def expression(self) -> str:
        return f"twisted({', '.join(map(str, self.shape))})"


@frozen
class Metacyclic(Group):
    """The group of pairs (a, b), numbered a*k + b, generated by A of order m and B with B A B^-1 = A^r and B^k = A^s.

    (a, b)(c, e) = (a + r^b c + s [b + e >= k] mod m, b + e mod k). It is a group if r^k = 1 and s(r - 1) = 0 modulo m.
    With s = 0 it is the semidirect product of Z_m and Z_k. Dihedral groups are (m, 2, -1), generalized quaternion
    groups (m, 2, -1, m/2).
    """

    m: int
    k: int
    r: int
    s: int = 0

    def __attrs_post_init__(self) -> None:
        m, k, r, s = self.m, self.k, self.r, self.s
        if m < 1 or k < 1 or pow(r, k, m) != 1 % m or s * (r - 1) % m:
            raise ValueError("needed m and k of at least 1, r^k = 1 modulo m and s*(r - 1) = 0 modulo m")
        object.__setattr__(self, "r", r % m)
        object.__setattr__(self, "s", s % m)

    @property
    def order(self) -> int:
        return self.m * self.k

    @cached_property
    def _powers(self) -> Array:
        return np.array([pow(self.r, b, self.m) for b in range(self.k)], dtype=np.int64)

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        exponent = a % self.k + b % self.k
        moved = a // self.k + self._powers[a % self.k] * (b // self.k) + self.s * (exponent >= self.k)
        product: Array = moved % self.m * self.k + exponent % self.k
        return product

    def inverse(self, a: Array | int) -> Array:
        a = np.asarray(a, dtype=np.int64)
        back = -(a % self.k) % self.k
        moved = a // self.k + self.s * (back > 0)
        inverse: Array = -self._powers[back] * moved % self.m * self.k + back
        return inverse

    @property
    def expression(self) -> str:
        last = f", {self.s}" if self.s else ""
        return f"metacyclic({self.m}, {self.k}, {self.r}{last})"


@frozen
class Semidirect(Group):
    """Vectors modulo ``shape`` extended by Z_k, which acts as the powers of an integer ``matrix`` (a tuple of rows).

    (v, b)(w, e) = (v + M^b w, b + e mod k); element (v, b) has number v*k + b. It is a group if M^k is the identity and
    M respects the moduli: shape[j] * M[i][j] = 0 modulo shape[i].
    """

    shape: tuple[int, ...]
    k: int
    matrix: tuple[tuple[int, ...], ...]

    def __attrs_post_init__(self) -> None:
        rank = len(self.shape)
        square = len(self.matrix) == rank and all(len(row) == rank for row in self.matrix)
        if not square or self.k < 1 or any(size < 1 for size in self.shape):
            raise ValueError("needed a square matrix with a row for every modulus, and k of at least 1")
        for i, size in enumerate(self.shape):
            if any(self.shape[j] * self.matrix[i][j] % size for j in range(rank)):
                raise ValueError("the matrix does not respect the moduli")
        if not np.array_equal(self._matrix_power(self.k), np.eye(rank, dtype=np.int64) % self._sizes):
            raise ValueError(f"power {self.k} of the matrix is not the identity")

    @property
    def _sizes(self) -> Array:
        return np.array(self.shape, dtype=np.int64)[:, None]

    def _matrix_power(self, times: int) -> Array:
        power = np.eye(len(self.shape), dtype=np.int64) % self._sizes
        square = np.array(self.matrix, dtype=np.int64) % self._sizes
        while times:
            if times % 2:
                power = square @ power % self._sizes
            square, times = square @ square % self._sizes, times // 2
        return power

    @property
    def order(self) -> int:
        return prod(self.shape) * self.k

    @cached_property
    def _moved(self) -> Array:
        """The products of M^b and every vector, shape (k, vectors)."""
        vectors = np.array(np.unravel_index(np.arange(prod(self.shape)), self.shape), dtype=np.int64)
        rows = []
        for _ in range(self.k):
            rows.append(np.ravel_multi_index(tuple(vectors), self.shape))
            vectors = np.array(self.matrix, dtype=np.int64) @ vectors % self._sizes
        return np.array(rows, dtype=np.int64)

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        a, b = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)
        moved = self._moved[a % self.k, b // self.k]
        product: Array = Translations(self.shape).multiply(a // self.k, moved) * self.k + (a + b) % self.k
        return product

    def inverse(self, a: Array | int) -> Array:
        a = np.asarray(a, dtype=np.int64)
        back = -a % self.k
        inverse: Array = self._moved[back, Translations(self.shape).inverse(a // self.k)] * self.k + back
        return inverse

    @property
    def expression(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        entries = ", ".join(str(x) for row in self.matrix for x in row)
        return f"semidirect(abelian({sizes}), {self.k}, {entries})"


@frozen
class Permutations(Group):
    """The symmetric group on ``degree`` points (at most 9), or with ``even`` the alternating group.

    Elements are numbered in lexicographic order of their images. ``a * b`` applies b first.
    """

    degree: int
    even: bool = False

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.degree <= 9:
            raise ValueError(f"found {self.degree} points, needed 1 to 9")

    @property
    def order(self) -> int:
        return max(factorial(self.degree) // (2 if self.even else 1), 1)

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        images, number, weights = _permutations(self.degree, self.even)
        first, then = np.broadcast_arrays(images[np.asarray(b)], images[np.asarray(a)])
        product: Array = number[np.take_along_axis(then, first, axis=-1) @ weights]
        return product

    def inverse(self, a: Array | int) -> Array:
        images, number, weights = _permutations(self.degree, self.even)
        return number[np.argsort(images[np.asarray(a)], axis=-1) @ weights]

    @property
    def expression(self) -> str:
        return f"{'alternating' if self.even else 'symmetric'}({self.degree})"


@lru_cache
def _permutations(degree: int, even: bool) -> tuple[Array, Array, Array]:
    """Return the images of every element, the number of every image list read in base ``degree``, and the weights."""
    images = np.array(list(permutations(range(degree))), dtype=np.int64)
    if even:
        pairs = [(i, j) for i in range(degree) for j in range(i + 1, degree)]
        inversions = sum((images[:, i] > images[:, j]).astype(np.int64) for i, j in pairs)
        images = images[np.broadcast_to(inversions, len(images)) % 2 == 0]
    # the last image follows from the others
    weights = np.array([degree**i if i < degree - 1 else 0 for i in range(degree)], dtype=np.int64)
    number = np.full(degree ** max(degree - 1, 1), -1, dtype=np.int32 if degree > 7 else np.int64)
    number[images @ weights] = np.arange(len(images))
    return images, number, weights


@frozen
class Direct(Group):
    """The direct product of two groups; element (a, b) has number a * (order of the second) + b."""

    one: Group
    two: Group

    @property
    def order(self) -> int:
        return self.one.order * self.two.order

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        a, b, size = np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64), self.two.order
        return self.one.multiply(a // size, b // size) * size + self.two.multiply(a % size, b % size)

    def inverse(self, a: Array | int) -> Array:
        a, size = np.asarray(a, dtype=np.int64), self.two.order
        return self.one.inverse(a // size) * size + self.two.inverse(a % size)

    @property
    def expression(self) -> str:
        return f"direct({self.one.expression}, {self.two.expression})"


@frozen
class Linear(Group):
    """A group of 2 x 2 matrices over the field of ``q`` elements; ``kind`` is one of :data:`.linear.LINEAR_KINDS`.

    These groups have few normal subgroups, so their Cayley digraphs reach far in few steps.
    Of the multiples of a matrix, ``psl`` and ``pgl`` keep the one whose first entry other than 0 is 1. Elements are
    numbered in lexicographic order of their entries, those with a = 1 first. So the identity is 0. The order is
    q(q^2 - 1), for psl with odd q half of it.
    """

    kind: str
    q: int

    def __attrs_post_init__(self) -> None:
        if self.kind not in LINEAR_KINDS:
            raise ValueError(f"found `{self.kind}`, needed {', '.join(LINEAR_KINDS)}")
        field_of(self.q)

    @property
    def order(self) -> int:
        whole = self.q * (self.q**2 - 1)
        return whole // 2 if self.kind == "psl" and self.q % 2 else whole

    def multiply(self, a: Array | int, b: Array | int) -> Array:
        field, entries = field_of(self.q), matrices_of(self.kind, self.q)[0]
        one, two = np.moveaxis(entries[np.asarray(a)], -1, 0), np.moveaxis(entries[np.asarray(b)], -1, 0)
        product = [
            field.plus[field.times[one[row], two[column]], field.times[one[row + 1], two[column + 2]]]
            for row in (0, 2)
            for column in (0, 1)
        ]
        return self._numbers(np.stack(product, axis=-1))

    def inverse(self, a: Array | int) -> Array:
        # the adjugate: the inverse times the determinant, which is 1 or a scalar that does not matter
        matrix, negative = matrices_of(self.kind, self.q)[0][np.asarray(a)], field_of(self.q).negative
        a11, a12, a21, a22 = np.moveaxis(matrix, -1, 0)
        return self._numbers(np.stack([a22, negative[a12], negative[a21], a11], axis=-1))

    def _numbers(self, matrices: Array) -> Array:
        """Return the numbers of matrices, shape (.., 4)."""
        if self.kind != "sl":
            matrices = scaled(matrices, field_of(self.q))
        found: Array = np.searchsorted(matrices_of(self.kind, self.q)[1], codes(matrices, self.q)).astype(np.int64)
        return found

    @property
    def expression(self) -> str:
        return f"{self.kind}(2, {self.q})"


# ---- groups by name

#: name -> (arguments in the form of the documentation, function that builds the group from integers and groups)
GROUPS: dict[str, tuple[str, Callable[..., Group]]] = {
    "cyclic": ("n", lambda n: Translations((n,))),
    "abelian": ("n, ..", lambda *shape: Translations(shape)),
    "dihedral": ("n", lambda n: Metacyclic(n, 2, -1)),
    "dicyclic": ("n", lambda n: Metacyclic(2 * n, 2, -1, n)),
    "mirrored": ("n, ..", lambda *shape: Mirrored(shape)),
    "twisted": ("k, 2k, ..", lambda *shape: Twisted(shape)),
    "metacyclic": ("m, k, r[, s]", Metacyclic),
    "semidirect": (
        "abelian(..), k, matrix entries row by row",
        lambda base, k, *entries: _semidirect(base, k, entries),
    ),
    "symmetric": ("n", lambda n: Permutations(n)),
    "alternating": ("n", lambda n: Permutations(n, even=True)),
    "direct": ("group, ..", lambda *groups: _direct(groups)),
    "psl": ("2, q", lambda n, q: _linear("psl", n, q)),
    "pgl": ("2, q", lambda n, q: _linear("pgl", n, q)),
    "sl": ("2, q", lambda n, q: _linear("sl", n, q)),
}


def _semidirect(base: Group, k: int, entries: Sequence[int]) -> Group:
    if not isinstance(base, Translations):
        raise ValueError("the first argument must be an abelian group")
    rank = len(base.shape)
    if len(entries) != rank * rank:
        rows_needed = f"{counted(rank, 'row')} of {rank}"
        raise ValueError(f"found {len(entries)} matrix entries, needed {rank * rank}: {rows_needed}")
    rows = (tuple(x % size for x in entries[i * rank : i * rank + rank]) for i, size in enumerate(base.shape))
    return Semidirect(base.shape, k, tuple(rows))


def _linear(kind: str, rows: int, q: int) -> Group:
    if rows != 2:
        raise ValueError(f"found matrices of {counted(rows, 'row')}, needed 2")
    return Linear(kind, q)


def _direct(groups: Sequence[Group]) -> Group:
    if not groups:
        raise ValueError("needed at least one group")
    first, *rest = groups
    for group in rest:
        first = Direct(first, group)
    return first


def build_group(name: str, arguments: Sequence[int | Group]) -> Group:
    """Return the group of a name in :data:`GROUPS`; raise ValueError with a message if the arguments are wrong."""
    signature, build = GROUPS[name]
    groups = {"direct": len(arguments), "semidirect": 1}.get(name, 0)
    wrong = [a for i, a in enumerate(arguments) if isinstance(a, Group) != (i < groups)]
    if wrong or not arguments:
        raise ValueError(f"needed {name}({signature})")
    if any(isinstance(a, int) and abs(a) > _LARGEST for a in arguments):
        raise ValueError(f"numbers go up to {_LARGEST}")
    if name in ("cyclic", "abelian", "mirrored", "twisted", "dihedral", "dicyclic") and any(
        isinstance(a, int) and a < 1 for a in arguments
    ):
        raise ValueError("sizes are at least 1")
    try:
        return build(*arguments)
    except TypeError:
        raise ValueError(f"needed {name}({signature})") from None


_LARGEST = 10**6
_TOKEN = re.compile(r"\s*([a-z]+|-?[0-9]{1,7}|[(),])")


def parse_group(text: str) -> Group:
    """Return the group of an :attr:`Group.expression`; raise ValueError if the text is not a group.

    >>> parse_group("direct(cyclic(3), metacyclic(7, 3, 2))").order
    63
    """
    tokens, at = list[str](), 0
    while at < len(text.rstrip()):
        match = _TOKEN.match(text, at)
        if not match or len(tokens) > 1000:
            raise ValueError(f"`{text[:60]}` is not a group")
        tokens.append(match[1])
        at = match.end()
    tokens.append("")
    group, rest = _parsed(tokens, 0, 0)
    if tokens[rest] or not isinstance(group, Group):
        raise ValueError(f"`{text[:60]}` is not a group")
    return group


def _parsed(tokens: Sequence[str], at: int, depth: int) -> tuple[int | Group, int]:
    name = tokens[at]
    if re.fullmatch(r"-?[0-9]+", name):
        return int(name), at + 1
    if name not in GROUPS or tokens[at + 1] != "(" or depth > 20:
        raise ValueError(f"found `{name}`, needed a group: {', '.join(GROUPS)}")
    arguments, at = list[int | Group](), at + 1
    while tokens[at] in ("(", ","):
        argument, at = _parsed(tokens, at + 1, depth + 1)
        arguments.append(argument)
    if tokens[at] != ")":
        raise ValueError(f"found `{tokens[at]}`, needed `)`")
    return build_group(name, arguments), at + 1
