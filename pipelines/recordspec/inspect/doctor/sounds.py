"""Probes of audio formats: those that TensorFlow reads, and those that soundfile writes."""

from __future__ import annotations

import io
from typing import Any

from recordspec._tf import tf
from recordspec.inspect.doctor.finding import check, version
from recordspec.inspect.doctor.samples import FLAC, MP3, OGG, SAMPLES, WAV
from recordspec.spec.media.decoders import decode_flac, decode_mp3, decode_ogg

_LOSSLESS = ("wav", "flac")


def read_wav() -> str:
    sound, rate = tf.audio.decode_wav(WAV)
    check(sound[:, 0].numpy().tolist() == [sample / 2**15 for sample in SAMPLES], "samples")
    check(int(rate) == 8000, "rate")
    return f"TensorFlow {tf.__version__}"


def read_flac() -> str:
    sound = decode_flac(FLAC)
    check(sound[:, 0].numpy().tolist() == list(SAMPLES), "samples")
    return version("tensorflow-io")


def read_mp3() -> str:
    return _lossy(decode_mp3(MP3), samples=2304, peak=0.29)


def read_ogg() -> str:
    return _lossy(decode_ogg(OGG), samples=32, peak=0.02)


def _lossy(sound: Any, samples: int, peak: float) -> str:
    check(sound.shape == (samples, 1), "shape")
    # decoders round differently: a tenth either way is the same sound
    check(0.9 * peak < float(tf.reduce_max(abs(sound))) < 1.1 * peak, "samples")
    return version("tensorflow-io")


def write(form: str) -> str:
    """Encodes a short ramp, and decodes it again."""
    import numpy as np
    import soundfile

    ramp = np.arange(0, 6400, 200, dtype=np.int16)
    stream = io.BytesIO()
    soundfile.write(stream, ramp, 8000, format=form)
    sound, rate = soundfile.read(io.BytesIO(stream.getvalue()), dtype="int16")
    check((sound.shape, rate) == (ramp.shape, 8000), "shape")
    check(form not in _LOSSLESS or sound.tolist() == ramp.tolist(), "samples")
    return f"soundfile {soundfile.__version__}, libsndfile {soundfile.__libsndfile_version__}"
