"""Checks and conversions of encoded sounds, given as bytes, files or arrays, and of values that are no sound."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest
import soundfile

import recordspec as rs
from media import decodes, sound_bytes, tone
from one_feature import audio_schema as schema
from one_feature import decoded, stored
from recordspec.schema.media import sounds

RNG = np.random.default_rng(0)
EDGES = np.array([[-32768, 32767], [0, -1], [1, 2]], np.int16)
EXACT = ["wav", "raw", *(["flac"] if decodes("flac") else [])]


@pytest.mark.parametrize("encoding", EXACT)
def test_samples_of_16_bits_come_back_as_they_were(encoding):
    given = schema(channels=2, encoding=encoding, dtype="int16")
    np.testing.assert_array_equal(decoded(given, EDGES), EDGES)
    floats = schema(channels=2, encoding=encoding)
    np.testing.assert_array_equal(decoded(floats, EDGES), EDGES / np.float32(32768))
    mono = schema(encoding=encoding, dtype="int16")
    np.testing.assert_array_equal(decoded(mono, EDGES[:, 0]), EDGES[:, :1])


def test_floats_are_exact_when_raw_and_of_16_bits_otherwise():
    samples = RNG.uniform(-1, 1, (50, 1)).astype(np.float32)
    np.testing.assert_array_equal(decoded(schema(encoding="raw"), samples), samples)
    for encoding in EXACT:
        if encoding != "raw":
            assert np.abs(decoded(schema(encoding=encoding), samples) - samples).max() <= 0.5 / 32768
    assert decoded(schema(), np.array([1.0, -1.0], np.float32)).tolist() == [[32767 / 32768], [-1.0]]
    np.testing.assert_array_equal(decoded(schema(encoding="raw"), samples * 9), samples * 9)


@pytest.mark.parametrize("encoding", ["mp3", "ogg"])
def test_lossy_encodings_keep_a_tone(encoding):
    if not decodes(encoding):
        pytest.skip("needs tensorflow-io")
    samples = tone(1.0) / np.float32(32768)
    found = decoded(schema(encoding=encoding), samples)
    assert found.shape == samples.shape
    assert np.corrcoef(found[:, 0], samples[:, 0])[0, 1] > 0.99


def ogg_pages(data: bytes) -> list[bytes]:
    """The pages of an Ogg file, in which no other place may begin like one."""
    assert data.startswith(b"OggS\0")
    return [b"OggS\0" + rest for rest in data[5:].split(b"OggS\0")]


def ogg_crc(page: bytes) -> int:
    """The CRC of RFC 3533, bit by bit."""
    remainder = 0
    for byte in page[:22] + bytes(4) + page[26:]:
        remainder ^= byte << 24
        for _ in range(8):
            remainder = (remainder << 1) ^ (0x104C11DB7 if remainder & 0x80000000 else 0)
    return remainder


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize("seconds", [0.01, 1, 10])
def test_the_pages_of_ogg_have_serial_number_0_and_their_crc(seconds, channels):
    samples = RNG.normal(0, 0.1, (int(seconds * 8000), channels)).clip(-1, 1).astype(np.float32)
    data = stored(schema(encoding="ogg", channels=channels), samples)
    theirs = sound_bytes(samples, 8000, "OGG", "VORBIS")
    ours, pages = ogg_pages(data), ogg_pages(theirs)
    assert len(ours) == len(pages) >= (10 if seconds > 1 else 3)
    for page, other in zip(ours, pages, strict=True):
        assert page[:14] + page[18:22] + page[26:] == other[:14] + other[18:22] + other[26:]
        assert page[14:18] == bytes(4)
        assert int.from_bytes(page[22:26], "little") == ogg_crc(page)
        assert int.from_bytes(other[22:26], "little") == ogg_crc(other)
    np.testing.assert_array_equal(*(soundfile.read(io.BytesIO(one))[0] for one in (data, theirs)))
    if decodes("ogg"):
        given = schema(encoding="ogg", channels=channels)
        np.testing.assert_array_equal(decoded(given, data), decoded(given, theirs))


@pytest.mark.parametrize("encoding", ["wav", "flac", "mp3", "ogg"])
def test_bytes_of_the_encoding_are_stored_as_they_are(encoding, tmp_path):
    data = sound_bytes(tone(1.0), 8000, encoding.upper(), "VORBIS" if encoding == "ogg" else None)
    path = tmp_path / f"x.{encoding}"
    path.write_bytes(data)
    given = schema(encoding=encoding)
    assert stored(given, data) == stored(given, path) == stored(given, str(path)) == data


@pytest.mark.parametrize(
    ("encoding", "subtype"),
    [("WAV", "PCM_U8"), ("WAVEX", "PCM_16"), ("FLAC", "PCM_16"), ("AIFF", "PCM_16")],
)
def test_other_formats_are_encoded_anew_without_a_loss(encoding, subtype):
    samples = tone() // 256 * 256
    data = sound_bytes(samples, 8000, encoding, subtype)
    np.testing.assert_array_equal(decoded(schema(dtype="int16"), data), samples)


def test_a_float_wav_is_taken_as_floats():
    data = sound_bytes(tone() / np.float32(32768), 8000, "WAV", "FLOAT")
    np.testing.assert_array_equal(decoded(schema(), data), tone() / np.float32(32768))


CUT = sound_bytes(tone(1.0), 8000)[:-4001]
FLAC_CUT = sound_bytes(RNG.integers(-9999, 9999, (9000, 1), np.int16), 8000, "FLAC")[:-5000]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"<html>", "expected a sound, got an HTML page"),
        (b"", "expected a sound, got no bytes at all"),
        (sound_bytes(tone(), 16000), "expected a sample rate of 8000 Hz, got 16000 Hz (`convert: true` resamples it)"),
        (sound_bytes(tone(channels=2), 8000), "expected channels: 1, got 2"),
        (sound_bytes(tone(3), 8000), "expected at most 2 s (max_seconds), got 3.000 s"),
        (sound_bytes(tone(0), 8000), "expected at least one sample, got none"),
        (sound_bytes(tone() / 32768, 8000, "WAV", "PCM_24"), "expected samples of 16 bits, got Signed 24 bit PCM (dtype float32 takes it, or `convert: true`)"),
        (CUT, "expected all of its samples, got a WAV file that lacks 4,001 bytes"),
        (FLAC_CUT, "expected audio that decodes, got "),
        (sound_bytes(tone(), 8000, "RF64"), "expected one of WAV, WAVEX, AIFF, FLAC, OGG, MP3, got RF64 (RIFF 64) (write it as WAV or FLAC)"),
        (np.zeros((3, 2), np.int16), "expected samples int16 [null, 1], got shape [3, 2]"),
        (np.zeros((0, 1), np.int16), "expected at least one sample, got none"),
        (np.zeros((3, 1)), "expected samples int16 [null, 1], got float64 of shape [3, 1]"),
        (np.zeros((3, 1), np.uint8), "expected samples int16 [null, 1], got uint8 of shape [3, 1]"),
        ([0, 1], "expected a path, bytes, or an array of samples, got list [0, 1]"),
        ("no/such.wav", "expected a sound file at no/such.wav, got no such file or directory"),
    ],
)  # fmt: skip
def test_what_is_no_such_sound_is_named(value, expected):
    with pytest.raises(rs.RecordError) as caught:
        schema(dtype="int16", max_seconds=2.0).encode({"x": value})
    assert str(caught.value).startswith(f"row 0: features.x: {expected}")


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (np.array([0.5, 1.5]), "expected samples from -1 to 1, got 1.5 (divide by the full scale)"),
        (np.array([0.5, np.nan]), "expected finite samples, got NaN or infinity"),
    ],
)
def test_floats_that_are_no_sound_are_named(samples, expected):
    with pytest.raises(rs.RecordError) as caught:
        schema().encode({"x": samples})
    assert str(caught.value) == f"row 0: features.x: {expected}"


def test_floats_that_float32_does_not_hold_are_named():
    with pytest.raises(rs.RecordError) as caught:
        schema(encoding="raw").encode({"x": np.array([0.5, -1e39])})
    expected = "row 0: features.x: expected float32, which holds it without overflow, got 1e+39"
    assert str(caught.value) == expected


def test_a_file_whose_name_is_wrong_is_refused(tmp_path):
    path = tmp_path / "x.mp3"
    path.write_bytes(sound_bytes(tone(), 8000))
    with pytest.raises(rs.RecordError) as caught:
        schema().encode({"x": path})
    assert (
        str(caught.value)
        == f"row 0: features.x: expected MP3 data, got {path}: a WAV file (it is named .mp3; `convert: true` takes it)"
    )


@pytest.mark.parametrize("subtype", ["PCM_16", "PCM_24", "PCM_U8", "PCM_32", "FLOAT", "DOUBLE"])
@pytest.mark.parametrize("encoding", ["WAV", "WAVEX"])
def test_half_a_file_is_refused_whatever_its_samples_are(encoding, subtype):
    whole = sound_bytes(tone(1.0) / 32768, 8000, encoding, subtype)
    schema().encode({"x": whole})
    with pytest.raises(
        rs.RecordError, match=r"expected all of its samples, got a WAV file that lacks [\d,]+ bytes"
    ):
        schema().encode({"x": whole[: len(whole) // 2]})


def test_half_an_aiff_file_is_refused():
    whole = sound_bytes(tone(1.0), 8000, "AIFF", "PCM_16")
    with pytest.raises(rs.RecordError, match=r"expected all of its samples, got .* that lacks 8,027 bytes"):
        schema().encode({"x": whole[: len(whole) // 2]})


def test_a_flac_file_of_unknown_length_is_refused():
    data = bytearray(sound_bytes(tone(1.0), 8000, "FLAC"))
    data[21] &= 0xF0  # STREAMINFO: 36 bits of the number of samples, of which 0 says that it is not known
    data[22:26] = bytes(4)
    with pytest.raises(rs.RecordError) as caught:
        schema().encode({"x": bytes(data)})
    assert str(caught.value) == (
        "row 0: features.x: expected a file that says how long it is, got a FLAC file that does not "
        "(it was streamed: write it again)"
    )


def test_music_louder_than_full_scale_is_clipped_as_players_do(tmp_path):
    loud = np.sign(np.sin(np.arange(8000) / 5)) * 0.999
    data = sound_bytes(loud, 8000, "OGG", "VORBIS")
    found = decoded(schema(), data)
    assert found.shape == (8000, 1)
    assert np.abs(found).max() <= 1.0
    (tmp_path / "x.ogg").write_bytes(data)
    assert np.abs(decoded(schema(encoding="raw"), tmp_path / "x.ogg")).max() > 1.0


@pytest.mark.parametrize("encoding", EXACT)
def test_samples_of_the_other_byte_order_are_the_same_samples(encoding):
    given = schema(channels=2, encoding=encoding, dtype="int16")
    np.testing.assert_array_equal(decoded(given, EDGES.astype(">i2")), EDGES)


def chunk(kind: bytes, data: bytes) -> bytes:
    return kind + len(data).to_bytes(4, "little") + data + bytes(len(data) % 2)


@pytest.mark.parametrize("place", [12, 36, None])
@pytest.mark.parametrize("size", [7, 8])
def test_wav_files_with_other_chunks_are_read_whole(place, size):
    plain = sound_bytes(tone(), 8000)
    extra = chunk(b"LIST", b"INFO" + bytes(size - 4))
    body = plain[8:]
    at = len(body) if place is None else place - 8
    data = b"RIFF" + (len(body) + len(extra)).to_bytes(4, "little") + body[:at] + extra + body[at:]
    np.testing.assert_array_equal(decoded(schema(dtype="int16"), data), tone())


def sine(rate: int, seconds: float = 0.5) -> np.ndarray:
    """440 Hz at half of full scale, float32 `[n, 1]`."""
    times = np.arange(round(rate * seconds)) / rate
    return (0.5 * np.sin(2 * np.pi * 440 * times)).astype(np.float32)[:, None]


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_16", "PCM_24", "FLOAT"])
def test_sounds_of_any_rate_channels_and_width_are_converted(subtype):
    """The samples are those of the same tone at the wanted rate."""
    for dtype, scale in (("float32", 1), ("int16", 32768)):
        given = schema(sample_rate=16000, dtype=dtype, convert=True)
        for rate in (8000, 16000, 22050, 44100):
            left = sine(rate)
            both = np.concatenate([left * 1.5, left * 0.5], axis=1)
            samples = decoded(given, sound_bytes(both, rate=rate, subtype=subtype))
            expected = sine(16000) * scale
            assert samples.shape == expected.shape
            middle = slice(100, -100)  # before the first and after the last sample there is silence
            worst = np.abs(samples.astype(float) - expected)[middle].max() / scale
            assert worst < (0.01 if subtype == "PCM_U8" else 0.001)


def test_conversion_equals_resampling_at_reading():
    sound = sound_bytes(sine(44100), rate=44100, subtype="FLOAT")
    converted = schema(sample_rate=16000, encoding="raw", convert=True)
    read = schema(sample_rate=44100, encoding="raw", resample=16000)
    np.testing.assert_allclose(decoded(converted, sound), decoded(read, sound), rtol=0, atol=1e-7)


def test_channels_are_mixed_or_repeated():
    stereo = np.array([[100, 300], [-5, -2], [32767, 32767]], np.int16)
    mono = schema(sample_rate=8000, dtype="int16", convert=True)
    for value in (stereo, sound_bytes(stereo, rate=8000)):
        assert decoded(mono, value).tolist() == [[200], [-4], [32767]]
    two = schema(sample_rate=8000, channels=2, dtype="int16", convert=True)
    assert decoded(two, stereo[:, :1]).tolist() == [[100, 100], [-5, -5], [32767, 32767]]
    with pytest.raises(rs.RecordError) as caught:
        two.encode({"x": np.zeros((5, 3), np.int16)})
    assert (
        str(caught.value) == "row 0: features.x: expected 1 channel, or 2, got 3 (`channels: 1` mixes them)"
    )


def test_what_need_not_be_converted_is_stored_unchanged(tmp_path):
    given = schema(sample_rate=8000, convert=True)
    sound = sound_bytes(EDGES[:, :1], rate=8000)
    assert stored(given, sound) == sound
    (tmp_path / "x.mp3").write_bytes(sound)
    assert stored(given, tmp_path / "x.mp3") == sound


def test_a_rate_without_a_common_divisor_is_refused():
    sound = sound_bytes(sine(44101), rate=44101)
    with pytest.raises(rs.RecordError) as caught:
        schema(sample_rate=48000, convert=True).encode({"x": sound})
    assert str(caught.value) == (
        "row 0: features.x: expected a rate that has a large divisor in common with 48000, got 44101 Hz"
    )


def test_a_plain_wav_needs_no_soundfile(monkeypatch):
    sound = sound_bytes(EDGES, rate=8000)
    other = sound_bytes(EDGES, rate=8000, subtype="PCM_24")
    monkeypatch.setitem(sys.modules, "soundfile", None)
    sounds.soundfile.cache_clear()
    given = schema(sample_rate=8000, channels=2, dtype="int16")
    assert stored(given, sound) == sound == stored(given, EDGES)
    (column,) = given.features[0].encode([sound])
    assert given.features[0].decode_numpy({"x": column}).values.tolist() == EDGES.tolist()
    with pytest.raises(rs.MissingExtra, match="soundfile"):
        stored(given, other)
    sounds.soundfile.cache_clear()
