"""Names for C: what may be an identifier, and what may stand in a comment."""

from __future__ import annotations

import re

from collc.ir.diagnostic import error

__all__ = ["chosen", "comment", "identifier"]

_KEYWORDS = """
auto break case char const continue default do double else enum extern float for goto if inline int long
register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
alignas alignof asm bool class constexpr delete false namespace new nullptr operator private protected public
static_assert template this thread_local throw true try typename typeof using virtual
"""

# External names of C99's library and of POSIX that a program may have linked; defining one of them would
# replace it for everybody, the MPI included.
_LIBRARY = """
main errno environ stdin stdout stderr assert signal raise setjmp longjmp
fopen freopen fclose fflush fread fwrite fgetc fgets fputc fputs getc getchar gets putc putchar puts ungetc
printf fprintf sprintf snprintf vprintf vfprintf vsprintf vsnprintf scanf fscanf sscanf vscanf vfscanf vsscanf
fseek ftell rewind fgetpos fsetpos feof ferror clearerr perror remove rename tmpfile tmpnam setbuf setvbuf
malloc calloc realloc free abort exit atexit getenv system bsearch qsort abs labs llabs div ldiv lldiv rand srand
atof atoi atol atoll strtod strtof strtold strtol strtoll strtoul strtoull mblen mbtowc wctomb mbstowcs wcstombs
memcpy memmove memset memcmp memchr strcpy strncpy strcat strncat strcmp strncmp strcoll strxfrm strchr strrchr
strcspn strspn strpbrk strstr strtok strlen strerror time clock difftime mktime asctime ctime gmtime localtime
strftime sin cos tan asin acos atan atan2 sinh cosh tanh exp exp2 expm1 log log2 log10 log1p logb pow sqrt cbrt
hypot fabs ceil floor trunc round rint fmod remainder fmin fmax fdim fma frexp ldexp modf scalbn erf gamma lgamma
tgamma nan j0 j1 jn y0 y1 yn isalpha isdigit isalnum isspace isupper islower ispunct isprint isgraph iscntrl
isxdigit tolower toupper
open close read write pread pwrite lseek dup dup2 pipe fork vfork execv execve execvp wait waitpid kill pause
alarm sleep usleep nanosleep getpid getppid getuid geteuid getgid access chdir chmod chown link unlink symlink
rmdir mkdir stat fstat lstat mount umount select poll ppoll epoll mmap munmap mprotect msync brk sbrk sync fsync
fdopen fileno popen pclose dlopen dlsym dlclose socket bind listen accept connect shutdown send recv sendto
recvfrom sendmsg recvmsg getsockopt setsockopt getaddrinfo gethostname sethostname index rindex bcopy bzero ffs
yield sched_yield clone daemon truncate ftruncate ioctl fcntl flock lockf swab getopt optarg optind optopt random
srandom drand48 regcomp regexec glob wordexp crypt encrypt setkey basename dirname nice times uname basename error
warn err step advance
"""

_RESERVED = {**dict.fromkeys(_KEYWORDS.split(), "a keyword of C or C++"),
             **dict.fromkeys(_LIBRARY.split(), "a name of the C library")}  # fmt: skip

#: characters of a name that are kept; file names are made of it
_LONGEST = 100

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _refusal(name: str, taken: frozenset[str]) -> str | None:
    """Return why a C function cannot have this name, or nothing where it can."""
    if not _IDENTIFIER.fullmatch(name):
        return "not a C identifier"
    if name.startswith("_"):
        return "reserved for the C implementation, as all names that begin with an underscore are"
    if name.upper().startswith(("MPI_", "PMPI_", "MPIX_")):
        return "a name of MPI"
    if name in _RESERVED:
        return _RESERVED[name]
    return "a name that the generated C uses itself" if name in taken else None


def identifier(name: str, taken: frozenset[str]) -> str:
    """Return ``name`` as the C identifier nearest to it; ``taken`` are names that the generated file uses.

    >>> identifier("reduce-scatter", frozenset()), identifier("free", frozenset()), identifier("3d", frozenset())
    ('reduce_scatter', 'collc_free', 'collc_3d')
    """
    name = re.sub(r"[^A-Za-z0-9_]", "_", name)[:_LONGEST]
    while _refusal(name, taken):
        name = "collc_" + name.lstrip("_")
    return name


def chosen(name: str, taken: frozenset[str]) -> str:
    """Return a name that the user chose for the function; raise C0705 where C cannot use it."""
    refusal = _refusal(name, taken)
    if refusal:
        near = identifier(name, taken)
        raise error("C0705", f"`{name}` is {refusal}", hint=f"name the function otherwise, e.g. `{near}`")
    return name


def comment(text: str) -> str:
    """Return ``text`` as it may stand in a comment of C: printable, one line, nothing that ends the comment.

    >>> comment("x */ #include")
    'x .. #include'
    """
    return re.sub(r"[^A-Za-z0-9 _.,:;=+<>(){}\[\]#-]", ".", text)
