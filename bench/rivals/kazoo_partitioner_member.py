"""A member that shares the partitions with kazoo's SetPartitioner, in the loop that its documentation
shows. member-side.ts describes the lines that it writes and reads. With the word `witness` first it
is no member, and tells instead when ZooKeeper lets the session of a member run out:
`x <ms> <member>`.
"""
import json
import os
import sys
import threading
import time

from kazoo.client import KazooClient

TICK_S = 0.01
ACQUIRE_WAIT_S = 0.5


def machine_ms():
    return time.monotonic_ns() / 1e6


def say(*words):
    sys.stdout.write(' '.join(str(word) for word in words) + '\n')
    sys.stdout.flush()


class Words:
    """What is said to this process; the end of its input ends it."""

    def __init__(self):
        self.heard = {'begin': threading.Event(), 'standby': threading.Event()}
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in sys.stdin:
            self.heard[line.strip()].set()
        os._exit(0)


def connect(task):
    client = KazooClient(hosts=task['store'], timeout=task['leaseTtlMs'] / 1000)
    client.start(timeout=30)
    return client


def work(client, task, words):
    words.heard['begin'].wait()
    partitioner = client.SetPartitioner(
        path=path_of(task),
        set=tuple(range(task['partitions'])),
        identifier=task['member'],
        time_boundary=int(sys.argv[-2]) / 1000)
    held = []
    last_ms = 0
    standing = False
    while True:
        if words.heard['standby'].is_set() and not standing:
            standing = True
            say('standing')  # all members share the same set from the beginning
        if held and not partitioner.acquired:
            say('-', last_ms, *held)
            held = []
        if partitioner.failed:
            say('!', 'lost, or unable to acquire')
            return
        if partitioner.release:
            partitioner.release_set()
        elif partitioner.acquired:
            if not held:
                held = list(partitioner)
                if held:
                    say('+', machine_ms(), *held)
            last_ms = machine_ms()
            time.sleep(TICK_S)
        else:
            partitioner.wait_for_acquire(timeout=ACQUIRE_WAIT_S)


def witness(client, task):
    seen = set()

    @client.ChildrenWatch(path_of(task) + '/party')
    def changed(children):
        present = {child[child.find('-') + 1:] for child in children}
        for member in seen - present:
            say('x', machine_ms(), member)
        seen.clear()
        seen.update(present)


def path_of(task):
    return '/' + task['prefix'].strip('/')


def main():
    task = json.loads(sys.argv[-1])
    words = Words()
    client = connect(task)
    if 'witness' in sys.argv:
        witness(client, task)
        say('ready')
    else:
        say('ready')
        work(client, task, words)
    threading.Event().wait()


main()
