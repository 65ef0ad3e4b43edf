"""The base of targets. A target is one frozen class whose fields are its options, like a pass.

``emit`` turns a Program into files and never changes it; emitting twice gives the same bytes. :class:`Limits` has the
limits of the runtime. The driver uses them as defaults for options of passes with the same names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from collc.ir.diagnostic import Kind, error
from collc.ir.frozen import frozen
from collc.ir.shown import clipped, counted, shown
from collc.ir.verify import Report

if TYPE_CHECKING:
    from collc.ir.collective import Collective
    from collc.ir.diagnostic import Excess
    from collc.ir.roots import Roots
    from collc.ir.spec import Option
    from collc.ir.tuning import TuningRequest

    from .msccl_xml.published import Published

__all__ = ["MAX_TEXT", "Artifact", "Hang", "Limits", "Target", "Window", "first_difference"]

#: the longest file that readers of programs take, in characters
MAX_TEXT = 512 << 20

_SHOWN = 100


@frozen
class Hang:
    """A program hangs in calls of ``from_bytes`` bytes and more; ``why`` names the blocked instructions."""

    from_bytes: int
    why: str


def _ascii_as_bytes(text: str | bytes) -> str | bytes:
    """Return a text as bytes if it is ASCII, as nearly all files are: large ones are not encoded again and again."""
    if isinstance(text, bytes):
        return text if text.isascii() else text.decode("utf-8", "surrogateescape")
    return text.encode() if text.isascii() else text


@frozen
class Artifact:
    """One file to be written: a suggested file name, its text, and its target.

    The text may be given as bytes. ``content`` has it as bytes if it is ASCII, and otherwise as text.
    ``label`` distinguishes files of one collective for different sizes. A target with a file for each node gives each
    its ``ending``, as ``.node1.xml``: the file's name ends so, for every name of the main file. If a target shares its
    files among collectives (``Target.shared``), the ``part`` of the main file is its input for them. ``model`` is the
    data that the text was written from. :meth:`Target.check` compares it with what it reads; it stays in its process.
    ``hangs`` is the hang of large calls, if the program hangs in them.

    >>> Artifact("grads.xml", "<algo/>", "msccl-xml")
    Artifact(grads.xml: msccl-xml, 7 characters)
    """

    filename: str
    content: str | bytes = attrs.field(repr=False, alias="text", converter=_ascii_as_bytes)
    target: str
    label: str = ""
    part: Any = attrs.field(default=None, repr=False, eq=False)  # Any: each target has its own
    model: object = attrs.field(default=None, repr=False, eq=False)
    hangs: Hang | None = attrs.field(default=None, repr=False, eq=False)
    ending: str = attrs.field(default="", repr=False)

    @property
    def text(self) -> str:
        """The text of the file."""
        return self.content if isinstance(self.content, str) else self.content.decode("ascii")

    @property
    def data(self) -> bytes:
        """The bytes of the file: UTF-8, except names of files in other encodings."""
        return self.content if isinstance(self.content, bytes) else self.content.encode("utf-8", "surrogateescape")

    def __repr__(self) -> str:
        label = f", {clipped(self.label)}" if self.label else ""
        size = counted(len(self.content), "character")
        return shown(self, f"{clipped(self.filename)}: {self.target}{label}, {size}")

    def __reduce__(self) -> tuple[object, ...]:
        return Artifact, (
            self.filename, self.content, self.target, self.label, self.part, None, self.hangs, self.ending,
        )  # fmt: skip


def first_difference(text: str, expected: str) -> str:
    """Return the first difference between a text and the ``expected`` one.

    >>> first_difference("a b", "a c")
    'line 1 is `a b`, not `a c`'
    """
    lines = zip_longest(text.splitlines(), expected.splitlines(), fillvalue="")
    for number, (found, due) in enumerate(lines, 1):
        if found != due:
            return f"line {number} is `{found[:_SHOWN]}`, not `{due[:_SHOWN]}`"
    return "the line breaks differ"


@frozen
class Limits:
    """The limits of a runtime; None means no limit."""

    max_threadblocks: int | None = None
    max_steps: int | None = None
    max_channels: int | None = None
    max_count: int | None = None
    max_offset: int | None = None
    #: elements of a file that a rank reads: one, all ranks, and its own threadblocks and steps
    max_elements: int | None = None
    fifo_depth: int | None = None
    fused: bool = True
    #: whether all chunks have one size, so that shards that differ must be cut into equal ones
    equal_chunks: bool = False
    #: whether ranks write into the buffers of their peers, so that programs become one-sided ones
    one_sided: bool = False
    #: whether the ranks of one-sided programs write for calls in place
    inplace: bool = False
    #: whether files hold the program of one rank of a symmetric network and its group
    templates: bool = False
    #: whether files list all ranks, and passes may work on one of each orbit before
    orbits: bool = False
    #: parallel instances that the user set
    instances: int | None = None


@frozen
class Window:
    """The calls that one of several algorithms of a collective serves: ``low`` to ``high`` bytes of the whole vector.

    Both are inclusive; if ``high`` is None, there is no upper limit. ``label`` names algorithm and sizes.
    """

    algorithm: str
    low: int
    high: int | None
    label: str


@frozen
class Target(ABC):
    """Base of all targets. Subclasses are ``@attrs.frozen`` with typed fields, as passes are.

    ``level`` is the input of ``emit``: a ``Program`` for code, ``one-sided`` for runtimes whose ranks write into the
    buffers of their peers, a ``Schedule`` for descriptions of schedules. Targets that need no schedule take the
    ``problem``, or the ``tuning`` that their ``request`` describes.
    ``suffix`` is appended to the input's stem for the default output name.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str]
    level: ClassVar[str] = "program"
    #: whether one set of files holds several algorithms and chooses between them by the size of a call
    selects: ClassVar[bool] = False
    #: the scheduler of requests that leave it to collc, if the target takes only schedules of a kind
    scheduler: ClassVar[str | None] = None
    #: whether a file names its use, in place or out of place, so that a program correct in one use is enough
    says_use: ClassVar[bool] = False
    #: whether it takes programs of some ranks of a network; others get the program of the ranks that take part
    takes_members: ClassVar[bool] = False
    #: whether a collective beside which ranks relay becomes a custom one, which is another call
    relays_as_custom: ClassVar[bool] = False
    #: characters of the longest file that is read back; None if there is no limit
    most_read: ClassVar[int | None] = None

    @property
    def title(self) -> str:
        """The target in messages."""
        return self.name

    @property
    def takes_relays(self) -> bool:
        """Whether its files may have ranks that only relay."""
        return False

    @property
    def shares_links(self) -> bool:
        """Whether its files can have transfers that share links, because switches copy or add."""
        return self.level == "one-sided"

    @property
    def scheduler_options(self) -> tuple[Option, ...]:
        """The options of :attr:`scheduler` that follow from those of the target."""
        return ()

    @property
    def limits(self) -> Limits:
        """The limits of the runtime with these options; by default there are none."""
        return Limits()

    @abstractmethod
    def emit(self, ir: Any) -> Sequence[Artifact]:  # Any: of its ``level``, which the driver checks
        """Return the files, the main one first; raise CollcError if the target cannot run the program."""

    @classmethod
    def options_of(cls, published: Published, name: str, given: Mapping[str, object]) -> Mapping[str, object]:
        """Return the options, by field, that keep the properties of a published file; by default none.

        ``name`` is the algorithm's. ``given`` are the options that the user wrote, by field; they decide.
        """
        return {}

    def in_chunks_of(self, published: Published) -> Target:
        """Return the target that writes chunks as large as a published file's, if it can choose."""
        return self

    @property
    def reads(self) -> tuple[str, ...]:
        """The paths of the files that its output depends on, besides the input."""
        return ()

    @property
    def request(self) -> TuningRequest:
        """What the tuning of a target of that level depends on."""
        raise NotImplementedError

    @property
    def reader(self) -> str | None:
        """The runtime of its files; None if the target has only one."""
        return None

    def within(self, window: Window) -> Target | None:
        """Return the target for calls of these sizes only; None if it serves no such call."""
        return self

    def require(self, collective: Collective) -> None:  # noqa: B027  # most targets take every collective
        """Raise CollcError unless the target takes a collective; any program that performs it may still not fit."""

    def instead(self, excess: Excess) -> tuple[str | None, str | None]:
        """Return the option that sets an exceeded limit, if the user gave it, and a hint with what would allow more."""
        return None, None

    def require_stem(self, stem: str) -> None:
        """Raise CollcError if files with this stem would hide other files, such as headers."""
        return

    def emit_selected(self, parts: Sequence[tuple[Window, Any]]) -> Sequence[Artifact]:  # Any: as for ``emit``
        """Return the files of several algorithms, windows ascending; for targets that ``select``."""
        raise NotImplementedError

    @property
    def shared(self) -> str | None:
        """The stem of the files that all collectives share; None if each collective has its own files."""
        return None

    def join(self, mains: Sequence[Artifact]) -> Sequence[Artifact]:
        """Return the files of several collectives, given the main file of each; for targets that share."""
        raise NotImplementedError

    def for_roots(self, roots: Roots, planned: int) -> Target:
        """Return the target for a collective with several roots, and the plan of one of them.

        By default it raises C0064: a file is for one root.
        """
        raise error(
            "C0064", f"{self.title} holds one root, but `{roots.name}` has {counted(len(roots.listed), 'root')}",
            hint=f"write `root: {planned}` and a collective for each other root, or use the target `mpi-c`",
            kind=Kind.MISFIT,
        )  # fmt: skip

    @abstractmethod
    def check(self, ir: Any, artifacts: Sequence[Artifact]) -> Report:  # Any: as for ``emit``
        """Read back the files that ``emit`` made of an IR, compare them with it, and execute them.

        A file with any difference fails, even if it is correct in itself. So does a text that the reader does not
        understand. It never raises for the contents of a file.
        """

    # Any: as for ``emit``
    def check_selected(self, parts: Sequence[tuple[Window, Any]], artifacts: Sequence[Artifact]) -> Report:
        """Read back the files that ``emit_selected`` made, as :meth:`check` does."""
        raise NotImplementedError

    def check_joined(self, mains: Sequence[Artifact], artifacts: Sequence[Artifact]) -> Report:
        """Read back the files that ``join`` made of the main file of each collective, as :meth:`check` does."""
        raise NotImplementedError
