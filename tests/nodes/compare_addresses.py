# SPDX-License-Identifier: Apache-2.0
"""Compares what is closed to requests of nodes with Python's ipaddress: whatever that does not count
as global is closed, and what is closed beyond that is in one of the networks below.

    compare_addresses.py --tool build/.../address_tool
"""

import argparse
import ipaddress
import random
import subprocess
import sys

# Global by some version's tables; closed here.
CLOSED_BEYOND = [ipaddress.ip_network(text) for text in (
    "168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b::/32", "2001::/23", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)]
EDGES = [
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24",
    "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "168.63.129.16/32", "::/128", "::1/128",
    "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001::/32", "2001:db8::/32", "2002::/16", "2000::/3", "3fff::/20",
    "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
]


def addresses():
    rng = random.Random(3)
    for text in EDGES:
        network = ipaddress.ip_network(text)
        for number in (-1, 0, 1, network.num_addresses // 2, network.num_addresses - 1, network.num_addresses):
            value = int(network.network_address) + number
            if 0 <= value < 2**network.max_prefixlen:
                yield type(network.network_address)(value)
        for _ in range(200):
            yield network[rng.randrange(network.num_addresses)]
    for _ in range(20_000):
        yield ipaddress.IPv4Address(rng.getrandbits(32))
        yield ipaddress.IPv6Address(rng.getrandbits(128))
        yield ipaddress.IPv6Address(0x2000 << 112 | rng.getrandbits(125))
        yield ipaddress.IPv6Address(0xFFFF << 32 | rng.getrandbits(32))


def is_open(address):
    inner = getattr(address, "ipv4_mapped", None) or address
    return inner.is_global and not (inner.is_multicast or inner.is_reserved or inner.is_private or inner.is_loopback or
                                    inner.is_link_local or inner.is_unspecified)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    options = parser.parse_args()
    given = list(addresses())
    text = "".join(f"{address}\n" for address in given)
    answers = subprocess.run([options.tool], input=text, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    wrong = 0
    for address, answer in zip(given, answers, strict=True):
        inner = getattr(address, "ipv4_mapped", None) or address
        beyond = any(inner in network for network in CLOSED_BEYOND if network.version == inner.version)
        if (answer == "open") != (is_open(address) and not beyond):
            wrong += 1
            print(f"{address}: {answer}, where ipaddress says {'global' if is_open(address) else 'not global'}")
    print(f"{len(given)} addresses, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
