import gzip

import numpy as np
import pytest

from dipedl_bench.datasets.images import read_idx

# by hand: 2 x 3 bytes
HAND = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60])
# Without the time: workers that collect in another second would name the tests differently
PACKED = gzip.compress(HAND, mtime=0)


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "some-idx"
        path.write_bytes(content)
        return path

    return write


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reads_a_hand_made_file(file, pack):
    array = read_idx(file(pack(HAND)))
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(array, [[10, 20, 30], [40, 50, 60]])


@pytest.mark.parametrize("shape", [(5,), (0,), (300,), (2, 3, 4)])
def test_any_rank(file, shape, rng, idx_bytes):
    array = rng.integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(read_idx(str(file(idx_bytes(array)))), array)


@pytest.mark.parametrize("keep", range(len(HAND)))
def test_every_truncation_is_refused(file, keep):
    with pytest.raises(ValueError, match=r"some-idx' must hold .* replace it"):
        read_idx(file(HAND[:keep]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (HAND[:-1], r"6 bytes of numbers for its shape \(2, 3\), got: 5"),
        (HAND + b"x", r"6 bytes of numbers for its shape \(2, 3\), got: 7"),
        (b"\x89PNG" + HAND[4:], "two zero bytes, got: b'.x89PNG'"),
        (HAND[:2] + b"\x0d" + HAND[3:], "unsigned bytes .type 0x08., got: type 0x0d"),
        (HAND[:3] + b"\x00" + HAND[4:], "one 32-bit size per dimension, got: 18 bytes for rank 0"),
        (HAND[:9], "one 32-bit size per dimension, got: 9 bytes for rank 2"),
        (PACKED[:-9], "a whole gzip file"),
        (b"\x1f\x8b" + b"\0" * 20, "a whole gzip file"),
        (
            PACKED[:12] + b"\xff\xff\xff" + PACKED[15:],
            "a whole gzip file",
        ),
    ],
)
def test_damage_is_named(file, content, message):
    with pytest.raises(ValueError, match=message):
        read_idx(file(content))
