"""Verifies a mail's DKIM signature with dkimpy and prints what it found.

argv: the name of the key's record, the record. stdin: the mail.
"""
import sys

import dkim

name, record = (a.encode() for a in sys.argv[1:])


def lookup(asked, timeout=5):
    return record if asked.rstrip(b".") == name else None


print("verified" if dkim.verify(sys.stdin.buffer.read(), dnsfunc=lookup) else "refused")
