# SPDX-License-Identifier: Apache-2.0
"""Langflow on machines of a Caisson server. Nothing is imported here: Langflow loads what it needs by entry point."""
