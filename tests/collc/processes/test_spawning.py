"""Workers and interrupts from the terminal."""

import os
import signal
import subprocess
import sys
import time

import pytest

# All imports come first: an interrupt may be lost in an import.
PROGRAM = """
import concurrent.futures.process, time
import multiprocessing.popen_spawn_posix, multiprocessing.queues, multiprocessing.resource_tracker
import collc.processes.spawning
from collc.processes.engines import Processes
from collc.processes.workers import Work

if __name__ == "__main__":
    try:
        print("begun", flush=True)
        with Processes(4) as processes:
            Work(processes).run(time.sleep, [(5.0,)] * 40, ["sleep"] * 40)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.skipif(os.name == "nt", reason="groups of processes")
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5])
def test_an_interrupt_while_workers_start_is_silent(seconds: float) -> None:
    running = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert running.stdout is not None
    assert b"begun\n" == running.stdout.readline()
    time.sleep(seconds)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (b"interrupted\n", b"", 0) == (out, err, running.returncode)


BETWEEN = """
import os, signal
from concurrent.futures import process
from collc.cli.signals import Signals, Terminated
from collc.processes.workers import pool

def started(self, start=process._ExecutorManagerThread.start):
    os.kill(os.getpid(), NUMBER)
    start(self)

if __name__ == "__main__":
    process._ExecutorManagerThread.start = started
    try:
        with Signals().caught(), pool(2) as processes:
            processes.submit(abs, 1).result()
    except Terminated as request:
        print(request.number)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_the_thread_of_a_pool_starts_is_silent(number: signal.Signals) -> None:
    command = [sys.executable, "-c", BETWEEN.replace("NUMBER", str(int(number)))]
    done = subprocess.run(command, capture_output=True, timeout=60, start_new_session=True)
    assert (f"{int(number)}\n".encode(), b"", 0) == (done.stdout, done.stderr, done.returncode)


KILLED = """
import os, signal
from collc.cli.signals import Signals
from collc.processes.workers import pool

if __name__ == "__main__":
    with Signals().caught(alone=ALONE), pool(2) as processes:
        processes.submit(abs, 1).result()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("alone", [True, False])
def test_only_a_program_of_others_warns_of_semaphores_when_it_is_killed(alone: bool) -> None:
    command = [sys.executable, "-c", KILLED.replace("ALONE", str(alone))]
    done = subprocess.run(command, capture_output=True, timeout=60)  # its workers hold the pipes
    assert (-signal.SIGKILL, b"") == (done.returncode, done.stdout)
    assert alone == (done.stderr == b"")
