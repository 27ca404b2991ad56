# SPDX-License-Identifier: Apache-2.0
"""What a server says of its machines: the driver that makes them, and their shapes."""

from dataclasses import dataclass

from lfx.utils.sandbox.base import SandboxUnavailableError

VIRTUAL = "hardware-virtualized"
DENY_ALL = ["240.0.0.0/4"]  # reserved addresses: nothing is there, and all else is denied
OPEN = ["*"]
# What images need, in MiB. Of others nothing is known.
OWN_IMAGES = ("devbox:1", "debian:12")
OWN_IMAGE_MIB, OTHER_IMAGE_MIB = 1024, 4096


@dataclass(frozen=True)
class Driver:
    """What the server says of the driver that makes our machines."""

    name: str
    isolation: str
    emulated: bool
    deny_all: bool
    addresses: bool
    host_names: bool


def read_driver(told: dict, wanted: str) -> Driver:
    try:
        name = wanted or told["default"]
        for one in told["drivers"]:
            if one["driver"] != name:
                continue
            egress = one["egress"]
            # What is not plainly true is not claimed.
            return Driver(name, str(one["isolation"]), one["emulated"] is not False, egress["deny_all"] is True,
                          egress["addresses"] is True, egress["host_names"] is True)
        names = ", ".join(one["driver"] for one in told["drivers"])
    except (KeyError, TypeError):
        raise SandboxUnavailableError("the server's answer to GET /v1/capabilities is not understood; its version and "
                                      "caisson-langflow's do not fit") from None
    raise SandboxUnavailableError(f"CAISSON_SANDBOX_DRIVER is {name}, which the server does not have; it has {names}")


def needed_mib(rootfs: str) -> int:
    return OWN_IMAGE_MIB if rootfs in OWN_IMAGES else OTHER_IMAGE_MIB


def choose_shape(shapes: list, pinned: str, least_mib: int, pinned_by: str = "CAISSON_SANDBOX_SHAPE") -> str:
    if pinned:
        found = [one for one in shapes if one["id"] == pinned]
        if not found:
            raise SandboxUnavailableError(f"{pinned_by} is {pinned}, which the server does not have; GET /v1/shapes "
                                          "lists them")
        if found[0]["mem_mib"] < least_mib:
            raise SandboxUnavailableError(f"{pinned_by} is {pinned} with {found[0]['mem_mib']} MiB, and {least_mib} are "
                                          "needed (the larger of LANGFLOW_SANDBOX_MEMORY_MB and what the image needs)")
        return pinned
    large = sorted((one["mem_mib"], one["vcpu"], one["id"]) for one in shapes if one["mem_mib"] >= least_mib)
    if not large:
        raise SandboxUnavailableError(f"no shape of the server has the {least_mib} MiB that are needed; lower "
                                      "LANGFLOW_SANDBOX_MEMORY_MB, or ask the server's operator")
    return large[0][2]
