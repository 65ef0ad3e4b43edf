"""The ranks that send the trees of a root to other pods, if its own pod cannot send all: few roots get help."""

from __future__ import annotations

from collections.abc import Iterator

from .box_sending import Group, Sending

__all__ = ["PodSending"]

_FEW = 256  # ranks of networks on which all roots get help alike
_MANY = 16  # trees of a root: fewer are hardly divided further


class PodSending(Sending):
    """As :class:`.box_sending.Sending`, but as many roots as possible have all their trees sent by their own pod.

    Other pods then help the trees of few roots, so there are few different trees. On small networks, and with few trees
    of a root, all roots get help alike: that takes more trees, and lower ones.
    """

    def _with_help(self, number: int) -> Iterator[tuple[int, list[Group] | None]]:
        if len(self.trees) <= _FEW or max(self.trees) < _MANY:
            yield from super()._with_help(number)
            return
        most, rooted = self.most[number], self.rooted[number]
        helped = list[int]()
        for root, own in self._in_turn(number):
            trees = self.trees[root]
            groups = None
            if most - trees * self.others >= rooted - trees:
                groups = self._divided(number, 0, trees, own)
            if groups is None:
                helped.append(root)
                continue
            most, rooted = most - trees * self.others, rooted - trees
            yield root, groups
        if not helped:
            return
        each, more = divmod(most, rooted)
        for root in helped:
            wider = min(more, self.trees[root])
            more -= wider
            parts = [(0, wider, each + 1), (wider, self.trees[root], each)]
            found = [self._helped(number, root, *part) for part in parts if part[0] < part[1]]
            yield root, None if None in found else [group for groups in found if groups for group in groups]
