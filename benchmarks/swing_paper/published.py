"""What the paper prints, and what its text says: numbers to set beside ours."""

from __future__ import annotations

from fractions import Fraction

__all__ = ["CONGESTION", "GOODPUT", "LABELS", "LIMITS"]

#: microseconds of 32 bytes, as the figures are labelled, by network and letter
LABELS: dict[str, dict[str, float]] = {
    "8x8": {"S": 7, "D": 8.7, "B": 25},
    "64x64": {"S": 40, "D": 57, "B": 230},
    "64x16": {"S": 26, "D": 36, "B": 230},
    "128x8": {"S": 41, "D": 59, "B": 464},
    "256x4": {"S": 74, "D": 109, "B": 932},
    "8x8x8": {"S": 10, "D": 13, "B": 38},
    "8x8x8x8": {"S": 14, "D": 17, "B": 51},
    "Hx2Mesh": {"S": 8, "D": 8, "B": 131, "H": 4000},
    "Hx4Mesh": {"S": 10, "D": 10, "B": 105, "H": 3000},
}

#: Gb/s that Swing approaches for large vectors
GOODPUT = {"Hx2Mesh": 753, "Hx4Mesh": 702}

#: what Swing's congestion approaches on square tori, by dimensions; the paper's roundings beside them
LIMITS = {
    2: (Fraction(6, 5), "1.19"),
    3: (Fraction(28, 27), "1.03"),
    4: (Fraction(120, 119), "1.008"),
}

#: D times the sum over steps of the most loaded link's share: Swing, recursive doubling on one port, mirrored by
#: negated distances and by reflected coordinates; of each what scatters and what exchanges everything. Four decimals.
CONGESTION: dict[tuple[int, ...], tuple[str, ...]] = {
    (8, 8): ("1.0781", "5", "4.875", "20", "1.3125", "7", "1.5000", "8"),
    (16, 16): ("1.1367", "10", "5.4375", "44", "1.4062", "15", "1.7344", "19"),
    (32, 32): ("1.1689", "21", "5.7188", "92", "1.4531", "31", "1.8633", "42"),
    (64, 64): ("1.1843", "42", "5.8594", "188", "1.4766", "63", "1.9307", "89"),
    (128, 128): ("1.1922", "85", "5.9297", "380", "1.4883", "127", "1.9651", "184"),
    (8, 8, 8): ("1.0254", "7.5", "6.7266", "45", "1.1484", "10.5", "1.2578", "12"),
    (8, 8, 8, 8): ("1.0071", "10", "8.4961", "80", "1.0693", "14", "1.1279", "16"),
    (64, 16): ("1.2207", "42", "5.7500", "116", "1.5312", "63", "2.0000", "89"),
    (128, 8): ("1.4082", "85", "6.0000", "200", "1.8125", "127", "2.4883", "184"),
    (256, 4): ("1.9512", "170", "7.0000", "386", "2.6250", "255", "3.9414", "375"),
    (2, 4): ("1.0000", "2", "2.5", "5", "1.25", "3", "1.25", "3"),
    (16,): ("1.4375", "5", "3.5", "11", "2.0", "", "2.625", ""),
    (64,): ("2.1094", "21", "5.5", "47", "3.0", "", "4.53", ""),
}
