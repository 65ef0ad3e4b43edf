"""Files for stock NCCL -> the variables that make it take them, how to see that it did, and how to undo it."""

from __future__ import annotations

from .stock import StockEnvironment, StockFile, Variable, as_object, as_shell, kind_of, stock_environment, stock_file

__all__ = [
    "StockEnvironment", "StockFile", "Variable", "as_object", "as_shell", "kind_of", "stock_environment", "stock_file",
]  # fmt: skip
