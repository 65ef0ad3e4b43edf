"""A library to preload that prints which of Open MPI's algorithms run: it wraps their functions by name."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

__all__ = ["build_observer"]

_HEAD = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
typedef long (*F)(long, long, long, long, long, long, long, long, long, long, long, long);
"""
_WRAP = """long NAME(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l)
{ fprintf(stderr, "used NAME\\n"); return ((F)dlsym(RTLD_NEXT, "NAME"))(a, b, c, d, e, f, g, h, i, j, k, l); }
"""


def build_observer(library: Path, folder: Path) -> Path:
    """Compile the observer for a ``libmpi.so``."""
    names = sorted(set(re.findall(rb"\0(ompi_coll_base_[a-z_]+_intra_[a-z_]+)(?=\0)", library.read_bytes())))
    text = _HEAD + "".join(_WRAP.replace("NAME", name.decode()) for name in names)
    (folder / "observer.c").write_text(text)
    command = ["cc", "-shared", "-fPIC", "-o", str(folder / "observer.so"), str(folder / "observer.c"), "-ldl"]
    subprocess.run(command, check=True)
    return folder / "observer.so"
