"""Base of readers: from the text of a file to IR."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from collc.ir.diagnostic import CollcError, Diagnostic
from collc.ir.levels import Executable
from collc.ir.verify import Report

from .loading import Loading

if TYPE_CHECKING:
    from collc.backends.msccl_xml.published import Published
    from collc.ir.spec import Spec

__all__ = ["ReadOptions", "Reader", "Reports"]


class ReadOptions(NamedTuple):
    """The options of reading and verifying a file.

    ``collective`` chooses among the collectives of a file, or names the one that a file performs without saying so.
    The file must be right for ``root`` and for the rules of ``runtime``; ``multiprocessors`` is the number of
    threadblocks of a rank that run at once.
    """

    loading: Loading = Loading()
    collective: tuple[str, ...] = ()
    root: int | None = None
    runtime: str | None = None
    multiprocessors: int | None = None


class Reports(NamedTuple):
    """The findings in a file: reports, each with its collective's name ("" if the file has none), and warnings.

    ``failed`` are the collectives that cannot be compiled, by name, with their mistakes. ``files`` are the files that
    were read, if the text names any.
    """

    named: tuple[tuple[str, Report], ...]
    warnings: tuple[Diagnostic, ...] = ()
    failed: tuple[tuple[str, CollcError], ...] = ()
    files: tuple[str, ...] = ()


class Reader(ABC):
    """Base of all readers; ``name`` is the format's. A reader needs only ``read``: all verbs use the IR it returns.

    For any text, a reader returns a result or raises CollcError. It reads no file but the text.
    """

    name: ClassVar[str]
    #: whether a file says which collective it performs; for others `--collective` says it
    names_collective: ClassVar[bool] = True

    def sniff(self, text: str) -> bool:
        """Return whether a text is of this format; it begins as the format's entry says."""
        return True

    def read(self, text: str, path: str) -> Executable:
        """Return the schedule, forest or program that a text holds; ``path`` names it in messages."""
        raise NotImplementedError

    def load(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable | None]:
        """Return the specification in a text and None, or the IR in a text and the specification it implements."""
        from .loading import with_spec

        return with_spec(self.read(text, path), path)

    def publish(self, text: str, path: str, options: ReadOptions) -> tuple[Spec, Executable, Published | None]:
        """Return a specification, the IR that ``collc convert`` begins with, and the file's own data on its use."""
        spec, level = self.load(text, path, options)
        assert level is not None
        return spec, level, None

    def verify(self, text: str, path: str, options: ReadOptions) -> Reports:
        """Execute the IR in a text symbolically and return the reports."""
        from collc.ir.verify import verify

        return Reports((("", verify(self.read(text, path))),))

    def together(self, texts: Sequence[tuple[str, str]], runtime: str | None) -> Report | None:
        """Return the report on several files, (text, path), that one runtime loads together; None without rules."""
        return None
