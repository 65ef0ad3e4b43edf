"""Names that an expression of a search may not contain.

An excluded network may have removed others from a frontier: the networks that it beats. So names are excluded during
the search, before candidates are compared, not from its result.
"""

from __future__ import annotations

import re

import attrs

__all__ = ["NOTHING", "Excluded", "names_in"]

#: what is called, and what is quoted: graphs of the literature
_NAME = re.compile(r'([A-Za-z_]\w*)\(|"([^"]*)"')


def names_in(expression: str) -> set[str]:
    """Return the names of families, operators, groups and graphs in an expression.

    >>> sorted(names_in('product(line(cayley(cyclic(8), {1, 3})), distance_regular("petersen"))'))
    ['cayley', 'cyclic', 'distance_regular', 'line', 'petersen', 'product']
    """
    return {called or quoted for called, quoted in _NAME.findall(expression)}


@attrs.frozen
class Excluded:
    """The ``names`` that no expression may contain."""

    names: frozenset[str] = frozenset()

    def allows(self, expression: str) -> bool:
        """Return whether the expression has none of the names."""
        return not self.names or self.names.isdisjoint(names_in(expression))


#: allows every expression
NOTHING = Excluded()
