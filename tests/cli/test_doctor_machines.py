# SPDX-License-Identifier: Apache-2.0
"""What `caisson doctor` says of the drivers of machines, with the image that images.native_root has built."""

import glob
import os
import tempfile
import time
import unittest

from programs import caisson, main


def machines(**variables: str) -> dict:
    told = caisson("doctor", "--json", env=variables, timeout=300).json()
    return {machine["driver"]: machine for machine in told["machines"]}


class Doctor(unittest.TestCase):
    def test_makes_a_machine_of_each_driver_or_says_why_not(self):
        told = machines()
        self.assertEqual({"jail", "oci-runsc", "oci-runc", "oci-podman", "oci-docker", "microvm", "firecracker"}, set(told))
        for machine in told.values():
            if machine["works"]:
                self.assertGreater(machine["milliseconds"], 0)
                self.assertTrue(machine["isolation_class"])
            else:
                self.assertTrue(machine["reason"], machine)
        # Another doctor may be at work meanwhile, whose directory goes when it is done.
        left = set(glob.glob("/var/tmp/caisson-doctor-*"))
        end = time.monotonic() + 120
        while left and time.monotonic() < end:
            time.sleep(0.2)
            left &= set(glob.glob("/var/tmp/caisson-doctor-*"))
        self.assertEqual(left, set())

    def test_tells_the_drivers_apart_by_what_stands_between(self):
        classes = {name: machine["isolation_class"] for name, machine in machines().items() if machine["works"]}
        known = {"jail": "namespaces", "oci-runsc": "user-space-kernel", "oci-runc": "container",
                 "oci-podman": "container", "oci-docker": "container"}
        self.assertEqual(classes, {name: known.get(name, kind) for name, kind in classes.items()})
        if os.geteuid() == 0 and not classes:
            self.skipTest(f"no driver works here: {machines()}")

    def test_says_that_there_is_no_image(self):
        with tempfile.TemporaryDirectory() as empty:
            for machine in machines(CAISSON_IMAGES_DIR=empty).values():
                self.assertFalse(machine["works"])
                self.assertRegex(machine["reason"], "no image|by root")

    def test_does_not_take_another_image_than_it_is_told(self):
        done = caisson("doctor", "--json", "--image", "no-such-image", timeout=300).json()
        for machine in done["machines"]:
            self.assertFalse(machine["works"], machine)


main()
