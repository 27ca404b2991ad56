# SPDX-License-Identifier: Apache-2.0
"""python -m caisson_orcheo: started by the engine, which holds the other end of descriptor 3."""

import argparse
import socket
import sys
import warnings

CHANNEL = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="caisson-orcheo", description="A node host; `caisson run --node-host` starts it.")
    parser.add_argument("--max-message-bytes", type=int, default=256 << 20, metavar="N")
    options = parser.parse_args()
    try:
        connection = socket.socket(fileno=CHANNEL)
        connection.getpeername()
    except OSError:
        print("caisson-orcheo: descriptor 3 is no socket; this program is started by `caisson run --node-host PYTHON`",
              file=sys.stderr)
        return 2
    connection.setblocking(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from caisson_orcheo import nodes
    except ImportError as error:
        print(f"caisson-orcheo: the package orcheo cannot be imported in {sys.executable}: {error}; "
              "install it there (pip install caisson-orcheo)", file=sys.stderr)
        return 1
    from caisson_orcheo.frames import Channel
    from caisson_orcheo.server import Server

    Server(Channel(connection, options.max_message_bytes), nodes).serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
