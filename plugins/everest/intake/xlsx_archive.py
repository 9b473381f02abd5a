"""Whether a workbook may be opened at all: a zip that is whole, of a sane size, with no document type in its XML.

Looked at before openpyxl reads a byte of it: entities and zip bombs do their harm while a file is being parsed.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import BinaryIO
from xml.parsers import expat

from everest.words import Said, say

MAX_PARTS = 1_000
MAX_UNPACKED_BYTES = 256 * 1024 * 1024
"""Of all parts: a sheet of 100,000 lines with long texts takes about 80 MiB."""

MAX_RATIO = 200
"""Unpacked to packed; sheets reach 30."""

SMALL_BYTES = 1024 * 1024
"""A part below needs no ratio, and the beginning of a part (up to its first element) is shorter."""

_CHUNK = 64 * 1024

UNREADABLE_XML = (expat.ExpatError, LookupError, ValueError)
"""What expat raises over XML that it can't read: the second over an encoding that nobody knows, the third over one that
it can't take or bytes that are not in it."""


def archive_flaw(stream: BinaryIO) -> Said | None:
    """What is wrong with the file as a container, None if openpyxl may have it. Rewinds the stream."""
    try:
        with zipfile.ZipFile(stream) as archive:
            return _flaw(archive)
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError, RuntimeError, zlib.error, *UNREADABLE_XML):
        return say("id", "file.book_damaged")
    finally:
        stream.seek(0)


def _flaw(archive: zipfile.ZipFile) -> Said | None:
    parts = archive.infolist()
    if len(parts) > MAX_PARTS:
        return say("id", "file.book_parts", n=len(parts), most=MAX_PARTS)
    if len({part.filename for part in parts}) < len(parts):
        return say("id", "file.part_twice")
    if any(part.flag_bits & 0x1 for part in parts):
        return say("id", "file.book_locked")
    if sum(part.file_size for part in parts) > MAX_UNPACKED_BYTES:
        return say("id", "file.book_size", most=MAX_UNPACKED_BYTES // 2**20)
    for part in parts:
        if part.file_size > SMALL_BYTES and part.file_size > MAX_RATIO * max(part.compress_size, 1):
            return say("id", "file.book_ratio")
    if "[Content_Types].xml" not in archive.namelist():
        return say("id", "file.zip_no_book")
    for part in parts:
        if part.filename.lower().endswith((".xml", ".rels", ".vml")) and _has_document_type(archive, part):
            return say("id", "file.doctype")
    return None


class _FirstElement(Exception):
    pass


class _DocumentType(Exception):
    pass


def _has_document_type(archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> bool:
    """A document type, the only place for entities, can stand before the first element only. Raises what is in
    UNREADABLE_XML: nobody should parse such a part further."""

    def document_type(*_: object) -> None:
        raise _DocumentType

    def first_element(*_: object) -> None:
        raise _FirstElement

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = document_type
    parser.StartElementHandler = first_element
    try:
        with archive.open(part) as content:
            for _ in range(SMALL_BYTES // _CHUNK):
                chunk = content.read(_CHUNK)
                parser.Parse(chunk, not chunk)
                if not chunk:
                    break
    except _FirstElement:
        return False
    except _DocumentType:
        return True
    return True
