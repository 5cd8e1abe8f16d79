"""The shortest files of their formats, which have no encoder in TensorFlow.

The images are red, then blue: one row of two pixels. The sounds have one channel.
"""

from __future__ import annotations

from base64 import b64decode

GIF = b64decode("R0lGODdhAgABAIEAAP8AAAAA/wAAAAAAACwAAAAAAgABAAAIBQABBAgIADs=")

BMP = b64decode("Qk0+AAAAAAAAADYAAAAoAAAAAgAAAAEAAAABABgAAAAAAAgAAADEDgAAxA4AAAAAAAAAAAAAAAD//wAAAAA=")

# lossless
WEBP = b64decode("UklGRh4AAABXRUJQVlA4TBEAAAAvAQAAAA8Q87//8x8OMqL/AQA=")

# what WAV and FLAC hold, as int16 at 8,000 Hz
SAMPLES = (0, 3835, 6731, 7979, 7274, 4787, 1128, -2806)

WAV = b64decode("UklGRjQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YRAAAAAAAPsOSxorH2ocsxJoBAr1")

FLAC = b64decode(
    "ZkxhQ4AAACIQABAAAAAZAAAZAfQA8AAAAAgrq7fVJX3XbYOewr1mnlF7//hkCAAH9hgAAA77GksfKwJZQ7htyPiAqg=="
)

# 2,304 samples of a tone at 24,000 Hz: the rate at which 8 kbit/s make the fewest bytes, and no tag
MP3 = b64decode(
    "//MUxAABuMLYAUAQAf//QgGBix7///nC//MUxAQDONb0AYBQAOGBx0ZBrxmLb/////MUxAIC0Nb4AYA4APzQm4mCRsuD09X///MU"
    "xAECYMrIAcAQAP5SlDAQEBGepUxB"
)

# 32 samples at 8,000 Hz. The codebooks of an encoder take thousands of bytes; this has one, of two entries.
OGG = b64decode(
    "T2dnUwACAAAAAAAAAAABAAAAAAAAAFnn/5ABHgF2b3JiaXMAAAAAAUAfAAAAAAAAAAAAAAAAAABmAU9nZ1MAAAAAAAAAAAAAAQAA"
    "AAEAAAC+uRXOAhA9A3ZvcmJpcwAAAAAAAAAAAQV2b3JiaXMAQkNWAQACAAAAEAEAgOICAIBiQAAAAAgAABQQAAAAAAACAPABAAAA"
    "BAAAAAAAAAAAAAAAAIBPZ2dTAAQgAAAAAAAAAAEAAAACAAAAb1osGgIHB1pawnEcxwFaWsJxHMcB"
)
