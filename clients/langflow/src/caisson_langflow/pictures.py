# SPDX-License-Identifier: Apache-2.0
"""Pictures among the artifacts, kept where Langflow shows them from: its own storage of files."""

import io
import re
import secrets

from .artifacts import Artifact

KINDS = {"PNG": "png", "JPEG": "jpg", "GIF": "gif", "WEBP": "webp"}  # none of which holds scripts
MOST_PIXELS = 40_000_000
MOST_PICTURES = 16


def kind_of(content: bytes) -> str:
    """The ending for a picture's name; empty for what is no picture that we show."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=tuple(KINDS)) as picture:
            width, height = picture.size
            return KINDS[picture.format] if 0 < width * height <= MOST_PIXELS else ""
    except Exception:  # noqa: BLE001: whatever a hostile picture makes of its reader, it is none
        return ""


def title_of(file: Artifact) -> str:
    """The file's name as it can stand in Markdown."""
    return re.sub(r"[^\w .-]", "_", file.path)[-100:]


async def keep(files: list[Artifact], flow_id: str | None) -> list[tuple[Artifact, str]]:
    """Those that are pictures, with their paths for a Message. Empty where there is no storage, or no flow that the pictures belong to."""
    from lfx.services.deps import get_storage_service

    storage = get_storage_service()
    if storage is None or not flow_id:
        return []
    kept = []
    for file in files:
        if len(kept) == MOST_PICTURES:
            break
        if ending := kind_of(file.content):
            name = f"caisson-{secrets.token_hex(8)}.{ending}"
            await storage.save_file(str(flow_id), name, file.content)
            kept.append((file, f"{flow_id}/{name}"))
    return kept
