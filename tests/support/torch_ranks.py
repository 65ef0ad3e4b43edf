"""Forks the ranks of jobs: ``torch_ranks.py COUNT PROGRAM SCENARIO..``, a job for each scenario, one after the other.

A scenario is a name, or several words: the program finds all of them among its arguments. Torch is imported once, which
takes longer than a job, and so are the modules of ``COLLC_CHECK_MODULES``. What each rank writes follows a line with
its number.
"""

from __future__ import annotations

import importlib
import os
import runpy
import socket
import sys
import tempfile
import traceback


def _is_free(port: int) -> bool:
    with socket.socket() as asked:
        try:
            asked.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


#: ports below those that the system gives to whoever asks for any (Linux: from 32768)
_FREE = filter(_is_free, range(20000 + os.getpid() * 16 % 12000, 32768))


def _rank(number: int, program: str, words: list[str], output: int) -> int:
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number))
    sys.argv = [program, *words]
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0) if not isinstance(end.code, str) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _job(count: int, program: str, words: list[str]) -> None:
    os.environ["MASTER_PORT"] = str(next(_FREE))
    outputs = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115
    children = []
    for number in range(count):
        child = os.fork()
        if child == 0:
            status = _rank(number, program, words, outputs[number].fileno())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        children.append(child)
    for number, child in enumerate(children):
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        outputs[number].seek(0)
        print(f"rank {number} ended with {status}\n{outputs[number].read().decode(errors='replace')}", flush=True)
        outputs[number].close()


def main() -> None:
    import torch
    import torch.distributed

    for module in os.environ.get("COLLC_CHECK_MODULES", "").split():
        importlib.import_module(module)
    torch.set_num_threads(1)
    count, program = int(sys.argv[1]), sys.argv[2]
    os.environ.update(WORLD_SIZE=str(count), MASTER_ADDR="127.0.0.1")
    for scenario in sys.argv[3:]:
        print(f"scenario {scenario}", flush=True)
        os.environ["COLLC_CHECK_SCENARIO"] = scenario
        _job(count, program, scenario.split())


if __name__ == "__main__":
    main()
