"""Plans for MSCCL++ -> the variables and the registration that make it take them, and how to see that it did."""

from __future__ import annotations

from .environment import PlanEnvironment, as_object, as_shell, plan_environment
from .plans import PlanFile, is_plan, plan_file, plans_in, require_together

__all__ = [
    "PlanEnvironment", "PlanFile", "as_object", "as_shell", "is_plan", "plan_environment", "plan_file", "plans_in",
    "require_together",
]  # fmt: skip
