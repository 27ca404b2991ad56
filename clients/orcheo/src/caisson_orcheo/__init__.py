# SPDX-License-Identifier: Apache-2.0
"""A node host for Caisson: runs node types of the orcheo package by name."""

__version__ = "0.1.0"
PROTOCOL = 1
