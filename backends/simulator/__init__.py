"""The simulator computes how long a schedule takes on the links of a network, message by message.

It is a flow model. The messages of a step share the links of their routes, and a step ends when its slowest message has
arrived. The model has no packets and no headers, so it shows the cost of congestion and distance, not of queues.
"""

from __future__ import annotations

from .convert import Level, traffic_of, traffic_of_one
from .crossovers import Crossover, Timed, crossovers
from .latency import LATENCIES, Latency
from .model import ROUTINGS, Simulation, assumptions, simulate
from .network import Routed, route
from .pipelined import forest_traffic
from .program_trace import Label, count_program_events, labels_of, program_trace_events, program_trace_json
from .programs import on_routes, program_traffic
from .step import StepLoad
from .trace import MOST_EVENTS, count_events, trace_events, trace_json
from .traffic import Traffic

__all__ = [
    "LATENCIES",
    "MOST_EVENTS",
    "ROUTINGS",
    "Crossover",
    "Label",
    "Latency",
    "Level",
    "Routed",
    "Simulation",
    "StepLoad",
    "Timed",
    "Traffic",
    "assumptions",
    "count_events",
    "count_program_events",
    "crossovers",
    "forest_traffic",
    "labels_of",
    "on_routes",
    "program_trace_events",
    "program_trace_json",
    "program_traffic",
    "route",
    "simulate",
    "trace_events",
    "trace_json",
    "traffic_of",
    "traffic_of_one",
]  # fmt: skip
