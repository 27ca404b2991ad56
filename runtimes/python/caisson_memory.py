# SPDX-License-Identifier: Apache-2.0
"""What makes forks of a zygote cheap. Its memory lies together in huge pages, of which a fork copies
one entry for each and not 512; and which small pages a call writes to is known beforehand."""

import ctypes
import os

PAGE = os.sysconf("SC_PAGE_SIZE")
HUGE_PAGE = 2 << 20
MADV_COLLAPSE = 25
PR_SET_THP_DISABLE = 41
M_MMAP_THRESHOLD, USUAL_THRESHOLD, LARGEST_THRESHOLD = -3, 128 << 10, 32 << 20

libc = ctypes.CDLL(None)
libc.madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int


class ArenaAllocator(ctypes.Structure):
    """PyObjectArenaAllocator of CPython's interface."""

    _fields_ = [("context", ctypes.c_void_p), ("allocate", ctypes.c_void_p), ("free", ctypes.c_void_p)]


def set_mmap_threshold(size):
    if hasattr(libc, "mallopt"):  # glibc's
        libc.mallopt(M_MMAP_THRESHOLD, size)


def gather(library):
    """From here on what is allocated lies side by side."""
    functions = (ctypes.cast(function, ctypes.c_void_p) for function in (library.caisson_map, library.caisson_unmap))
    ctypes.pythonapi.PyObject_SetArenaAllocator(ctypes.byref(ArenaAllocator(None, *functions)))
    set_mmap_threshold(LARGEST_THRESHOLD)


def use_huge_pages(library):
    """Whoever writes to a huge page afterwards splits it, so this comes last. Where the kernel
    refuses, forks only take longer."""
    set_mmap_threshold(USUAL_THRESHOLD)
    library.caisson_leave_room()
    libc.prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)
    for begin, end in list(writable_ranges("self")):
        for at in range(-(-begin // HUGE_PAGE) * HUGE_PAGE, end - HUGE_PAGE + 1, HUGE_PAGE):
            libc.madvise(at, HUGE_PAGE, MADV_COLLAPSE)
    libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)  # what calls add of their own comes in small pages


def writable_ranges(process):
    with open(f"/proc/{process}/maps") as file:
        for line in file:
            bounds, rights = line.split()[:2]
            if rights == "rw-p":
                begin, end = bounds.split("-")
                yield int(begin, 16), int(end, 16)


def written_ranges(process):
    """Stretches of memory that are the process's own, since it has written to them after its fork:
    iovec[], as process_madvise takes it."""
    present_and_own = 1 << 63 | 1 << 56
    ranges = []
    with open(f"/proc/{process}/pagemap", "rb", buffering=0) as pagemap:
        for begin, end in writable_ranges(process):
            pagemap.seek(begin // PAGE * 8)
            entries = memoryview(pagemap.read((end - begin) // PAGE * 8)).cast("Q")
            for at, entry in zip(range(begin, end, PAGE), entries):
                if entry & present_and_own != present_and_own:
                    continue
                if ranges and sum(ranges[-1]) == at:
                    ranges[-1][1] += PAGE
                else:
                    ranges.append([at, PAGE])
    return (ctypes.c_uint64 * (2 * len(ranges)))(*(number for pair in ranges for number in pair))


def rehearse(library, work):
    """Runs `work` in a fork and says what it wrote to; empty where the kernel does not tell."""
    done, say_done = os.pipe()
    wait, let_go = os.pipe()
    pid = library.caisson_fork()
    if pid == 0:
        try:
            os.close(let_go)
            work()
            os.write(say_done, b"x")
            os.read(wait, 1)
        finally:
            os._exit(0)
    os.close(say_done)
    os.close(wait)
    written = (ctypes.c_uint64 * 0)()
    try:
        if pid > 0 and os.read(done, 1):
            written = written_ranges(pid)
    except OSError:
        pass
    os.close(done)
    os.close(let_go)
    if pid > 0:
        os.waitpid(pid, 0)
    return written
