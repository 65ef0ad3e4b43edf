"""Known arrivals from which the search starts; finding them takes too long for a compilation.

:func:`.search.least_rounds` found them. Every schedule is verified, so the table need not be trusted.
"""

from __future__ import annotations

import attrs
import numpy as np

from .demand import Demand
from .schedules import Arrivals

__all__ = ["known_arrivals"]


@attrs.frozen
class _Known:
    """An allgather on one network: ``heads`` are the heads of every rank's links, a digit (base 16) each.

    ``steps`` are, for every part (shard by shard, ``types`` parts per shard), the steps after which the ranks have it.
    """

    heads: str
    types: int
    steps: str

    def links(self) -> list[tuple[int, int]]:
        return [(tail, int(head, 16)) for tail, word in enumerate(self.heads.split()) for head in word]

    def arrivals(self) -> Arrivals:
        """Return the arrivals, with one chunk per part."""
        return Arrivals(self.types, 1, np.array([[int(digit) for digit in word] for word in self.steps.split()]))


_ALL = (
    # modified_debruijn(2, 4)
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
    # modified_debruijn(3, 2)
    _Known(
        "123 245 678 012 358 678 014 034 567",
        3,
        (
            "011132332 011133222 011132323 301211222 301211222 301211222 230322111 230322111 330232111 111023233 "
            "111023222 111022333 222101221 222101221 222101221 223320111 233320111 333230111 112213032 112213033 "
            "112212033 122113302 122112303 122112302 323331110 223321110 233221110"
        ),
    ),
    # modified_debruijn(3, 2), transposed
    _Known(
        "367 036 013 047 167 148 258 258 245",
        3,
        (
            "033232113 032123133 033123213 203133233 102332123 103133132 110133223 120233323 210133323 133013233 "
            "132032313 322012312 313203112 323303213 213303132 313230332 332310321 213310321 323321031 331233031 "
            "231331032 321322301 323321301 331221303 331312330 332311230 231331330"
        ),
    ),
    # modified_debruijn(4, 2)
    _Known(
        "1235 2567 89ab cdef 0123 3467 89ab 4cef 013b 457a 089b cdef 012d 4567 89af 6cde",
        2,
        (
            "0211212233333323 0122333233333333 3012212323233333 3023331123333322 3303233221112332 "
            "2202333312323333 3220332333331131 3330333322332312 3113023332323333 1321023333332232 "
            "3332302133332333 3231101223233233 2333330332123333 2333320311313223 3333233032231213 "
            "3322132033333231 1331323303323323 3133322303313332 3333213130233322 2223133330123333 "
            "3333333322012223 1232323211033333 2323332333301221 3333223333303112 1322333233330133 "
            "3113333223230333 3333232233333033 2332111132222033 3233233311223302 2333333333122201 "
            "3333323323232110 2233331332331320"
        ),
    ),
    # modified_debruijn(4, 2), transposed
    _Known(
        "48ac 048c 014c 0458 579d 019d 15df 159d 26ae 26ae 269e 268a 37bf 3bcf 37bf 37be",
        1,
        (
            "0322132213131333 1033123313321223 1103133332231332 1220112213232233 2322013131332123 "
            "1133202321323133 3132210222322131 2133313031233132 3212231303133213 3213331230133312 "
            "2313331331023313 3313321312102322 3321233123310331 2331322333211021 3231323122313301 "
            "3331333133313210"
        ),
    ),
)


def known_arrivals(demand: Demand) -> list[Arrivals]:
    """Return the known arrivals for exactly these ranks and links; parallel links count once."""
    if demand.collective.kind != "allgather":
        return []
    links = list(zip(demand.tail.tolist(), demand.head.tolist(), strict=True))
    return [known.arrivals() for known in _ALL if known.links() == links]
