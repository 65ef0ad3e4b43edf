"""Programs within a target's limits: reduce the numbers that passes declare, or say which smaller ones would fit.

A pass declares by a :class:`~collc.passes.knobs.Knob` which of its numbers can be reduced. A limit declares by its kind
that a smaller number may help. The driver reduces what the user did not fix: it halves the number until the program
fits, and if a smaller number costs something, it searches for the largest that fits. If the user fixed the number, or
if the least is still too much, the message of the limit names a number that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from collc.backends.base import Target
from collc.ir.diagnostic import CollcError, Kind
from collc.ir.frozen import frozen
from collc.ir.levels import Executable, Level
from collc.ir.spec import Problem
from collc.passes.knobs import Knob

from ..messages.internal import is_fatal
from ..registry.elements import element_text
from .maker import Maker
from .plan import Plan
from .resolving import unfolded_for
from .result import Emitted

__all__ = ["Fitted", "fit"]

#: the plan that ran, the IR that it left, and the files
Fitted = tuple[Plan, Executable, Emitted | None]

#: numbers tried between one that fits and the next larger one that does not
_BISECTIONS = 3


def fit(maker: Maker, first: Level, chain: Plan, target: Target | None) -> Fitted:
    """Run a plan from ``first`` to the target's files; return the plan that ran, its IR, and the files.

    A scheduler that chooses its number of trees takes another one if its choice exceeds a limit. Raises CollcError; if
    a limit is exceeded, with a hint at the number that fits, if there is one.
    """
    chooses = isinstance(first, Problem) and bool(chain.passes) and chain.passes[0].chooses_trees
    try:
        return _fitted(maker, first, chain, target, maker.session.settings.hints and not chooses)
    except CollcError as mistake:
        if not chooses or not mistake.is_only(Kind.LIMIT):
            raise
        found = _in_fewer_trees(maker, first, chain, target)
        if found is None:
            raise
        return found


def _in_fewer_trees(maker: Maker, first: Level, chain: Plan, target: Target | None) -> Fitted | None:
    """Return the files with the best number of trees that fits; None if none does."""
    assert isinstance(first, Problem), "a scheduler chooses"
    for fewer in chain.passes[0].in_fewer_trees(first):
        try:
            found = _fitted(maker, first, chain.replaced(0, fewer), target, False)
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            continue
        knob = next(one for one in fewer.varies if not one.free and not one.noted)
        name, number = target.name if target else "any target", knob.text(getattr(fewer, knob.option))
        maker.remark(f"{fewer.name}: {number}, because the number it chose exceeds limits of `{name}`")
        return found
    return None


def _fitted(maker: Maker, first: Level, chain: Plan, target: Target | None, hints: bool) -> Fitted:
    """Return what :func:`fit` does with the scheduler's own number of trees; ``hints`` at numbers take trials."""
    free = list(_free(chain, maker.session.unset_options))
    begin, limits = free[0].at if free else 0, _limits(target)
    chain, given = _run_within(maker, first, chain, 0, begin, limits)
    given = unfolded_for(chain.passes[begin], given) if free else given
    fitting = _Fitting(maker, first, given, begin, limits, target.name if target else "any target", hints)
    chain = fitting.capped(chain, free)
    try:
        return fitting.attempt(maker, given, chain, begin)
    except CollcError as mistake:
        if not mistake.is_only(Kind.LIMIT):
            raise
        return fitting.reduced(chain, free, mistake)


def _run_within(
    maker: Maker, ir: Level, chain: Plan, begin: int, end: int, limits: Mapping[str, int]
) -> tuple[Plan, Level]:
    """Run the passes ``begin`` to ``end`` (exclusive) of a plan, each adapted to the limits; return plan and IR."""
    for at in range(begin, end):
        this = chain.passes[at].within(ir, limits)
        if this is not chain.passes[at]:
            chain = chain.replaced(at, this)
            maker.announce(chain)
        ir = maker.run(ir, chain, begin=at, end=at + 1)
    return chain, ir


@frozen
class _FreeNumber:
    """A free number of pass number ``at`` of a plan, and whether the user ``fixed`` it."""

    at: int
    knob: Knob
    fixed: bool

    def taken(self, chain: Plan, given: Level, make: Callable[[], Level]) -> int:
        """Return the number that the pass uses, given the IR before it and a function that returns the IR after it."""
        return self.knob.taken(chain.passes[self.at], given, make)

    def set(self, chain: Plan, number: int) -> Plan:
        """Return the plan with another number."""
        return chain.replaced(self.at, self.knob.set(chain.passes[self.at], number))


@frozen(eq=False)
class _Fitting:
    """One plan that is to keep a target's limits; ``given`` is the IR before pass number ``begin``.

    That pass is the first that has a free number.
    """

    maker: Maker
    first: Level
    given: Level
    begin: int
    limits: Mapping[str, int]
    target: str
    hints: bool

    # ---- attempts

    def attempt(self, maker: Maker, ir: Level, chain: Plan, begin: int) -> Fitted:
        """Run a plan from pass number ``begin`` on, and emit; keep no remarks on a program that has no files."""
        with maker.remarks_of_files():
            chain, ir = _run_within(maker, ir, chain, begin, len(chain.passes), self.limits)
            assert not isinstance(ir, Problem), "a plan begins with synthesis unless an IR was read"
            return chain, ir, maker.finish(chain, ir)

    def fits(self, maker: Maker, ir: Level, chain: Plan, begin: int) -> bool:
        """Return whether a plan makes files."""
        try:
            self.attempt(maker, ir, chain, begin)
        except CollcError as mistake:
            if is_fatal(mistake):
                raise
            return False
        return True

    # ---- reducing free numbers

    def capped(self, chain: Plan, free: Sequence[_FreeNumber]) -> Plan:
        """Return the plan with the first free number no larger than is worth trying."""
        if not free or free[0].fixed:
            return chain
        most = free[0].knob.most(self.given, self.limits)
        if most is None or self.taken(self.maker, chain, free[0]) <= most:
            return chain
        chain = free[0].set(chain, most)
        self.maker.announce(chain)
        return chain

    def reduced(self, chain: Plan, free: Sequence[_FreeNumber], mistake: CollcError) -> Fitted:
        """Return the files of a plan with smaller free numbers, reduced in order; else raise with a hint."""
        for free_number in free:
            if free_number.fixed:
                break
            if free_number.knob.lossy:
                if fitted := self.largest(chain, free_number):
                    return fitted
                continue
            number = self.taken(self.maker, chain, free_number)
            while number > 1:
                number //= 2
                chain = free_number.set(chain, number)
                self.maker.announce(chain)
                try:
                    return self.attempt(self.maker, self.given, chain, self.begin)
                except CollcError as again:
                    if not again.is_only(Kind.LIMIT):
                        raise
                    mistake = again
        raise _with_hint(mistake, self.hint(chain, free) if self.hints else None) from None

    def taken(self, maker: Maker, chain: Plan, free_number: _FreeNumber) -> int:
        """Return the number that a pass uses; ``maker`` runs the passes that this takes."""
        at = free_number.at
        chain, before = _run_within(maker, self.given, chain, self.begin, at, self.limits)
        return free_number.taken(chain, before, lambda: _run_within(maker, before, chain, at, at + 1, self.limits)[1])

    def largest(self, chain: Plan, free_number: _FreeNumber) -> Fitted | None:
        """Run a plan with the largest number that was found to fit; None if no number fits."""
        found = self.largest_fitting(self.maker.trial(), chain, free_number)
        if found is None:
            return None
        fewer = free_number.set(chain, found)
        self.maker.announce(fewer)
        try:
            fitted = self.attempt(self.maker, self.given, fewer, self.begin)
        except CollcError as mistake:
            if found > 1 or is_fatal(mistake):
                raise
            return None
        name, most = chain.passes[free_number.at].name, free_number.knob.text(found)
        self.maker.remark(f"{name}: in more than {most} the program exceeds limits of `{self.target}`")
        return fitted

    def largest_fitting(self, trial: Maker, chain: Plan, free_number: _FreeNumber) -> int | None:
        """Return the largest number that was found to fit, by halving, then by bisection; None if there is none.

        1 is not tried: if no other number fits, only the files of 1 are left to make.
        """
        at = free_number.at
        chain, before = _run_within(trial, self.given, chain, self.begin, at, self.limits)
        over = free_number.taken(chain, before, lambda: _run_within(trial, before, chain, at, at + 1, self.limits)[1])
        fits = over // 2
        while fits > 1 and not self.fits(trial, before, free_number.set(chain, fits), at):
            fits, over = fits // 2, fits
        for _ in range(_BISECTIONS if fits else 0):
            middle = (fits + over) // 2
            if middle == fits:
                break
            if self.fits(trial, before, free_number.set(chain, middle), at):
                fits = middle
            else:
                over = middle
        return fits or None

    # ---- numbers that would fit

    def hint(self, chain: Plan, free: Sequence[_FreeNumber]) -> str | None:
        """Return the option that keeps the limits; None if the smallest numbers exceed them too."""
        trial, at_least = self.maker.trial(), list[_FreeNumber]()
        for free_number in free:
            if free_number.knob.lossy:
                continue
            at_least.append(free_number)
            number = self.taken(trial, chain, free_number)
            while number > 1:
                number //= 2
                if self.fits(trial, self.given, free_number.set(chain, number), self.begin):
                    written = _option_text(chain, free_number, number)
                    return f"{free_number.knob.text(number)} {_fit(number)}: `{written}`"
            chain = free_number.set(chain, 1)
        return self.scheduler_hint(trial, chain, at_least)

    def scheduler_hint(self, trial: Maker, chain: Plan, at_least: Sequence[_FreeNumber]) -> str | None:
        """Return the option of the first pass that keeps the limits, with all free numbers at their smallest."""
        least = "".join(f" {free_number.knob.single}" for free_number in at_least if free_number.knob.single)
        for knob in chain.passes[0].varies if chain.passes else ():
            if knob.free or knob.noted:
                continue
            number = knob.taken(chain.passes[0], self.first, lambda: self.given)
            while number > 1:
                number //= 2
                fewer = chain.replaced(0, knob.set(chain.passes[0], number))
                if self.fits(trial, self.first, fewer, 0):
                    written = _options_text(chain, knob, number, at_least)
                    return f"{knob.text(number)}{least} {_fit(number)}: {written}"
        return None


def _free(chain: Plan, unset: frozenset[str]) -> Iterator[_FreeNumber]:
    """Yield the free numbers of a plan in order; of several that count the same, the first.

    ``unset`` are the options of the first pass that the user did not write.
    """
    seen, fixed = set[str](), set[str]()
    for at, this in enumerate(chain.passes):
        for knob in this.varies:
            if knob.free and knob.counts not in seen:
                seen.add(knob.counts)
                is_fixed = knob.is_set(this) and not knob.upper
                yield _FreeNumber(at, knob, is_fixed or not fixed.isdisjoint(knob.kept_by))
        fixed |= {k.counts for k in this.varies if k.is_set(this) and not (at == 0 and k.option in unset)}


def _option_text(chain: Plan, free_number: _FreeNumber, number: int) -> str:
    """Return the text that sets a free number: the scheduler's option if that was given, else the pass's."""
    noted = _scheduler_knob(chain, free_number)
    if noted is not None and noted.is_set(chain.passes[0]):
        return _option(noted, number)
    return element_text(free_number.knob.set(chain.passes[free_number.at], number))


def _options_text(chain: Plan, knob: Knob, number: int, at_least: Sequence[_FreeNumber]) -> str:
    """Return the text that sets a number of the scheduler, and the free numbers to 1."""
    noted = [_scheduler_knob(chain, free_number) for free_number in at_least]
    options = ", ".join([_option(knob, number), *(_option(one, 1) for one in noted if one is not None)])
    alone = [free_number for free_number, one in zip(at_least, noted, strict=True) if one is None]
    return " with ".join([f"`{options}`", *(f"`{_option_text(chain, free_number, 1)}`" for free_number in alone)])


def _scheduler_knob(chain: Plan, free_number: _FreeNumber) -> Knob | None:
    """Return the scheduler's knob that a free number follows; None if there is none."""
    return next((one for one in chain.passes[0].varies if one.noted and one.counts == free_number.knob.counts), None)


def _option(knob: Knob, number: int) -> str:
    return f"{knob.option.replace('_', '-')}: {number}"


def _limits(target: Target | None) -> dict[str, int]:
    """Return the limits that a target has, by name."""
    found = attrs.asdict(target.limits) if target else {}
    return {name: most for name, most in found.items() if most is not None}


def _fit(number: int) -> str:
    return "fits" if number == 1 else "fit"


def _with_hint(mistake: CollcError, hint: str | None) -> CollcError:
    """Return a mistake with another hint; unchanged if ``hint`` is None."""
    if hint is None:
        return mistake
    return CollcError([attrs.evolve(d, hint=hint) for d in mistake.diagnostics], mistake.exit_status)
