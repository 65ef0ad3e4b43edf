"""Conjecture 1 of the direct-connect paper on small circulants: the survey of benchmarks/conjecture.py, and a slice."""

from __future__ import annotations

import sys
from fractions import Fraction
from itertools import combinations
from math import gcd

import numpy as np
import pytest
from lp import step_loads
from places import benchmark

from collc.ir.collective import Collective
from collc.ir.costs.cost import cost
from collc.ir.spec import Problem
from collc.ir.topology import Topology
from collc.passes.synthesis.breadth_first.bfb import BFB

conjecture = benchmark("conjecture")


def circulant(n, steps):
    return Topology.from_links("circulant", n, [(r, (r + s) % n) for r in range(n) for s in steps])


def bfb(net):
    return cost(BFB(relax=False).run(Problem(net, Collective("allgather", net.num_ranks))))


@pytest.mark.parametrize(("n", "k"), [(12, 1), (12, 2), (15, 2), (12, 3), (13, 3), (16, 3)])
def test_every_circulant_is_in_one_class(n, k):
    """All connected sets, moved by units one by one, fall into the classes that are listed, each listed once."""
    units = [u for u in range(1, n) if gcd(u, n) == 1]

    def least(offsets):
        return min(tuple(sorted(min(u * a % n, -u * a % n) for a in offsets)) for u in units)

    every = [s for s in combinations(range(1, n // 2 + 1), k) if gcd(n, *s) == 1]
    assert sorted({least(s) for s in every}) == [tuple(row) for row in conjecture.classes(n, k).tolist()]


@pytest.mark.parametrize("n", range(2, 17))
def test_the_criterion_is_what_the_scheduler_finds(n):
    """Counted sets of links and the exact scheduler agree on every circulant, in both readings of n/2."""
    for k in (1, 2, 3):
        for offsets in conjecture.classes(n, k).tolist():
            readings = [[*offsets, *(n - a for a in offsets)]]
            if offsets[-1] * 2 == n:
                readings.append(readings[0][:-1])
            for steps in readings:
                found = conjecture.first_unbalanced_step(np.array([steps]), n)[0]
                assert (found == 0) == (bfb(circulant(n, steps)).T_B == Fraction(n - 1, n))


def test_the_conjecture_up_to_40():
    """It holds up to two offsets (proved in the paper) and fails from three on."""
    surveys = {(n, k): conjecture.survey(n, k) for n in range(1, 41) for k in (1, 2, 3)}
    assert 0 == sum(len(s.plain) + len(s.single) for (_, k), s in surveys.items() if k <= 2)
    failing = {n: s.plain for (n, k), s in surveys.items() if s.plain}
    assert ((1, 4, 5), (1, 5, 6)) == failing[15] and min(failing) == 15
    assert ((1, 3, 4),) == surveys[8, 3].single
    # two links to one node bring the same shard in the first step, so no such circulant can do
    assert all(len(s.double) == s.special for (n, _), s in surveys.items() if n > 2)
    assert 48 == sum(len(rows) for rows in failing.values())


def test_the_smallest_counterexample_by_the_linear_program():
    """C(15, {1, 4, 5}): LP (1) on HiGHS needs 3/2 in step 2, where 8 shards on 6 links would be 4/3."""
    net = circulant(15, [1, 14, 4, 11, 5, 10])
    assert [1, 1.5] == pytest.approx(step_loads(net))
    assert Fraction(1) == bfb(net).T_B


def test_the_survey_prints_its_counterexamples(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["conjecture.py", "--most", "16"])
    conjecture.main()
    out = capsys.readouterr().out
    assert "n = 15: {1, 4, 5} {1, 5, 6}\n" in out and "n = 8, n/2 as one link: {1, 3, 4}\n" in out
    assert "n = 4, n/2 as two links: {1, 2}\n" in out
