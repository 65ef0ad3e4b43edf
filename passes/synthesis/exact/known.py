"""Arrivals that took the search longer than a compilation should, to start from.

They were found by :func:`.search.least_rounds`; nothing rests on them, since every schedule is verified.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from .demand import Demand
from .schedules import Arrivals

__all__ = ["known_arrivals"]

Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class _Known:
    """An allgather on one network: ``heads`` are the heads of every rank's links, a digit (base 16) each.

    ``steps`` are, for every piece (shard by shard, ``types`` pieces a shard), the steps after which the ranks have it.
    """

    heads: str
    types: int
    steps: str

    def links(self) -> list[tuple[int, int]]:
        return [(tail, int(head, 16)) for tail, word in enumerate(self.heads.split()) for head in word]

    def arrivals(self) -> Arrivals:
        """Return the arrivals, at one chunk a piece."""
        return Arrivals(self.types, 1, np.array([[int(digit) for digit in word] for word in self.steps.split()]))


_ALL = (
    # modified_debruijn(2, 4), as it is
    _Known(
        "15 23 45 67 89 ab cd ef 01 23 4f 67 89 ab cd 0e",
        1,
        (
            "0145315445235543 5011322554345554 5505113344524454 3450541155444332 2342053411555455 4555402554113542 "
            "5544550542241154 2445534043432211 1122425305445545 5411235230554434 4533144522054321 4455451135302225 "
            "5223444411550555 4554254253115043 3354545424421105 1234555555553410"
        ),
    ),
    # modified_debruijn(2, 4), transposed
    _Known(
        "8f 08 19 19 2a 02 3b 3b 4c 4c 5d 5d 6e 6e 7f 7a",
        1,
        (
            "0533235214233551 1054353315342552 3105353421542535 2130255431354453 3215044532153354 1415304523453545 "
            "5231420535515234 4551335052513455 5543132505231335 5324155350351523 3325513353055125 2553512535404143 "
            "5443531254520313 4352451353335012 5352545143525301 3535523145135230"
        ),
    ),
    # modified_debruijn(3, 2), as it is
    _Known(
        "123 245 478 012 356 678 015 348 067",
        3,
        (
            "031123323 011223323 013132333 301311233 302331223 301213233 330212311 230333231 330313212 111033332 "
            "213022333 121033332 333201332 322103133 323101133 333220311 233320113 233330121 112333033 133231023 "
            "313321032 233312301 233113302 322133301 132333210 122332110 323332120"
        ),
    ),
    # modified_debruijn(3, 2), transposed
    _Known(
        "368 036 013 047 127 146 458 258 257",
        3,
        (
            "033122123 032232331 033123131 203133323 103333132 103122132 110123233 130233332 310133233 123013233 "
            "132013313 232032313 313302313 321303312 311203223 213310333 323310123 213230132 332331021 332313033 "
            "332311031 323321201 321233302 231331301 231332310 331221320 323331210"
        ),
    ),
    # modified_debruijn(4, 2), as it is
    _Known(
        "1234 2567 39ab 5def 0123 4678 78ab 9cef 0136 457a 89bc cdef 012b 456f 89ad 0cde",
        2,
        (
            "0321323333333232 0113132333323333 3012321223323333 3023212133332323 3303223331213332 3301323322133233 "
            "3330333322332311 3330212223333133 1212033333223333 3121033233333323 3233301112233332 2322102233333333 "
            "3333330122312223 3332330312132333 3333233031233231 2233333033231213 1121233303333322 2332331203323333 "
            "3333333120122332 3232112230333333 3323323331021333 2333332313013233 2233333332301312 2333322333302121 "
            "3112323332330333 1232333333310323 2333331233233021 2323113323333032 3233332312122203 3333233221233102 "
            "1223233333321220 3333223333232110"
        ),
    ),
    # modified_debruijn(4, 2), transposed
    _Known(
        "48cf 048c 014c 0248 059d 139d 158d 1569 56ae 27ae 269e 26ac 7abf 3bef 37bf 37bd",
        2,
        (
            "0333123333221333 0332222313323331 1033233313233332 2033133233321233 1103133322333332 3203333233231332 "
            "1330322313332333 2310133323332233 2233013332323133 1323023221232333 2331303231233132 3133203322333233 "
            "3332310332323132 3133230313232323 3323331021333223 2132312023332233 3223321303133323 3232313203333312 "
            "3312233330133312 3233323130333323 2313321322033233 3332332331023313 3233331333201332 2213233333102323 "
            "3332323133310231 3323332332130323 2321333233323011 3323332333213023 3233333132333301 3331233223312303 "
            "3321232132323230 3322332233312120"
        ),
    ),
)


def known_arrivals(demand: Demand) -> list[Arrivals]:
    """Return what is known for just these ranks and links, parallel links counting once."""
    if demand.collective.kind != "allgather":
        return []
    links = list(zip(demand.tail.tolist(), demand.head.tolist(), strict=True))
    return [known.arrivals() for known in _ALL if known.links() == links]
