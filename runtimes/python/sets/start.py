# SPDX-License-Identifier: Apache-2.0
# The first source that a template runs, whatever its set.
import os
import sys

sys.path[:0] = ["/usr/local/lib/caisson"]
sys.path.append("/usr/local/lib/site")
sys.dont_write_bytecode = True

import caisson_locks

caisson_locks.install()
os.chdir("/workspace")
# There are no users here; libraries that name a cache directory ask for one.
for name in ("getuid", "geteuid"):
    if not hasattr(os, name):
        setattr(os, name, lambda: 65534)
del name
# What was printed before a limit ends a run must have left the guest by then.
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
del stream

import caisson_block
import caisson_body
import caisson_guard
import caisson_host
