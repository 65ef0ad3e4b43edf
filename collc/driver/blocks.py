"""Collectives that run at the same time: each is scheduled on its part of every link."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from collc.ir.diagnostic import error
from collc.ir.spec import CollectiveRequest, Spec
from collc.passes.schedulers import RANKS, SCHEDULERS

from .relaying import alone_of, with_relays

if TYPE_CHECKING:
    from collc.passes.synthesis.groups.together import Together

__all__ = ["Block", "blocks_of"]


@attrs.frozen(eq=False, slots=False)
class Block:
    """The requests of one ``together`` block, as they were written."""

    requests: tuple[CollectiveRequest, ...]

    @cached_property
    def found(self) -> Together:
        """The shares of the links, and the bound of all together; raises what :func:`.together.together` raises."""
        from collc.passes.synthesis.groups.together import together

        for request in self.requests:
            if request.problem.topology is not self.requests[0].problem.topology:
                raise _other(request, f"`{self.requests[0].name}` is on another network", "write a block for each")
            if request.problem.collective.pre is not None:
                raise _other(request, "it has conditions of its own", "write it outside the block")
        return together([_relaying(request).problem for request in self.requests])

    def divided(self, request: CollectiveRequest) -> CollectiveRequest:
        """Return one of the requests, with its shares of the links; a schedule written by hand has all links."""
        request = with_relays(request)
        names = [one.name for one in self.requests]
        return attrs.evolve(request, problem=self.found.problems[names.index(request.name)])


def _relaying(request: CollectiveRequest) -> CollectiveRequest:
    """Return a request in which ranks relay only if its scheduler takes relays, which become switches for it."""
    request = with_relays(request)
    known = SCHEDULERS.get(request.schedule.scheduler)
    if known is None or known.networks != RANKS or not request.problem.topology.is_direct:
        return request
    return alone_of(request) or request


def _without_relays(request: CollectiveRequest) -> CollectiveRequest:
    """Return a request in which no rank relays, if its members are connected without."""
    return alone_of(with_relays(request)) or request


def _other(request: CollectiveRequest, reason: str, hint: str) -> Exception:
    return error(
        "C0063", f"`{request.name}` cannot run together with the others: {reason}", span=request.span, hint=hint
    )


def blocks_of(spec: Spec, has_relays: Callable[[CollectiveRequest], bool]) -> Mapping[str, Block]:
    """Return the block of every collective that runs together with others, by its name.

    ``has_relays`` returns whether the files of a collective may have ranks that only relay.
    """
    found: dict[str, Block] = {}
    for names in spec.together:
        if len(names) > 1:
            requests = [spec.collectives[name] for name in names]
            block = Block(tuple(one if has_relays(one) else _without_relays(one) for one in requests))
            found |= dict.fromkeys(names, block)
    return found
