// The loops over the bytes of records, for `native.py`: plain buffers in and out, no Python.
//
// Every read is compared with the end of its buffer first, and no length is added before it is compared. What is
// allocated is bounded by a small multiple of the input. No exception leaves this file.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "records are little-endian, and are copied as they are"
#endif
#ifndef SOURCE_HASH
#define SOURCE_HASH ""
#endif
#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// The finalizer of SplitMix64 (Steele et al. 2014), and the number of which it adds multiples.
constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;
uint64_t splitmix64(uint64_t word) {
  word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9;
  word = (word ^ (word >> 27)) * 0x94D049BB133111EB;
  return word ^ (word >> 31);
}

template <class T> T load(const uint8_t *at) {
  T value;
  memcpy(&value, at, sizeof value);
  return value;
}

template <class T> void store(uint8_t *at, T value) { memcpy(at, &value, sizeof value); }

// ---- CRC32C (Castagnoli), by the processor where it has the instruction ----

struct Bytewise {
  uint32_t of[256];

  Bytewise() {
    for (uint32_t byte = 0; byte < 256; byte++) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
      of[byte] = crc;
    }
  }
};

uint32_t crc_by_table(uint32_t crc, const uint8_t *at, size_t size) {
  static const Bytewise table;
  for (; size; size--) crc = crc >> 8 ^ table.of[(crc ^ *at++) & 0xff];
  return crc;
}

// As inline assembly, which needs no option of the compiler: whether the processor has it is asked when it runs.
#if defined(__x86_64__)
#define HAS_CRC_INSTRUCTION __builtin_cpu_supports("sse4.2")
inline uint64_t crc_step(uint64_t crc, uint64_t word) {
  asm("crc32q %1, %0" : "+r"(crc) : "rm"(word));
  return crc;
}
inline uint32_t crc_step(uint32_t crc, uint8_t byte) {
  asm("crc32b %1, %0" : "+r"(crc) : "rm"(byte));
  return crc;
}
#elif defined(__aarch64__)
#define HAS_CRC_INSTRUCTION (getauxval(AT_HWCAP) & 1 << 7)  // HWCAP_CRC32
inline uint64_t crc_step(uint64_t crc, uint64_t word) {
  asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(word));
  return crc;
}
inline uint32_t crc_step(uint32_t crc, uint8_t byte) {
  asm(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(uint32_t(byte)));
  return crc;
}
#endif

#if defined(HAS_CRC_INSTRUCTION)
uint32_t crc_of_stream(uint32_t crc, const uint8_t *at, size_t size) {
  uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) wide = crc_step(wide, load<uint64_t>(at));
  crc = uint32_t(wide);
  for (; size; size--) crc = crc_step(crc, *at++);
  return crc;
}

// What a CRC becomes after so many bytes of zero: it is linear, so that the bytes of a CRC count one by one.
struct After {
  uint32_t of[4][256] = {};

  explicit After(size_t size) {
    std::vector<uint8_t> zeros(size);
    for (uint32_t place = 0; place < 4; place++)
      for (uint32_t bit = 0; bit < 8; bit++) {
        uint32_t crc = crc_of_stream(1u << (8 * place + bit), zeros.data(), size);
        for (uint32_t byte = 0; byte < 256; byte++) of[place][byte] ^= byte >> bit & 1 ? crc : 0;
      }
  }

  uint32_t operator()(uint32_t crc) const {
    return of[0][crc & 0xff] ^ of[1][crc >> 8 & 0xff] ^ of[2][crc >> 16 & 0xff] ^ of[3][crc >> 24];
  }
};

// The instruction takes three cycles, but begins every cycle: three streams at once, which are joined then.
template <size_t kStream> uint32_t crc_of_streams(uint32_t crc, const uint8_t *&at, size_t &size) {
  static const After after(kStream);
  for (; size >= 3 * kStream; at += 3 * kStream, size -= 3 * kStream) {
    uint64_t first = crc, second = 0, third = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      first = crc_step(first, load<uint64_t>(at + i));
      second = crc_step(second, load<uint64_t>(at + kStream + i));
      third = crc_step(third, load<uint64_t>(at + 2 * kStream + i));
    }
    crc = after(after(uint32_t(first)) ^ uint32_t(second)) ^ uint32_t(third);
  }
  return crc;
}

uint32_t crc_by_instruction(uint32_t crc, const uint8_t *at, size_t size) {
  crc = crc_of_streams<4096>(crc, at, size);
  crc = crc_of_streams<256>(crc, at, size);
  return crc_of_stream(crc, at, size);
}
#endif

using Crc = uint32_t (*)(uint32_t, const uint8_t *, size_t);

Crc chosen() {
#if defined(HAS_CRC_INSTRUCTION)
  if (HAS_CRC_INSTRUCTION) return crc_by_instruction;
#endif
  return crc_by_table;
}

// The masked CRC of TFRecord files (tensorflow/core/lib/hash/crc32c.h).
uint32_t masked_crc(const uint8_t *at, size_t size) {
  static const Crc crc_of = chosen();
  uint32_t crc = ~crc_of(~0u, at, size);
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

constexpr size_t kHeader = 12, kFooter = 4;

bool is_header(const uint8_t *at) { return load<uint32_t>(at + 8) == masked_crc(at, 8); }

void seal(uint8_t *frame, size_t size) {
  size_t data = size - kHeader - kFooter;
  store<uint64_t>(frame, data);
  store<uint32_t>(frame + 8, masked_crc(frame, 8));
  store<uint32_t>(frame + kHeader + data, masked_crc(frame + kHeader, data));
}

// ---- protobuf's wire format ----

constexpr uint8_t kFirst = 0x0a, kSecond = 0x12;  // fields 1 and 2, of a stated length

struct Span {
  const uint8_t *at, *end;

  size_t size() const { return size_t(end - at); }

  // A field with this tag, which states its length.
  bool field(uint8_t tag, Span &value) {
    if (at == end || *at != tag) return false;
    at++;
    uint64_t length = 0;
    for (int shift = 0;; shift += 7) {
      if (at == end || shift > 28) return false;  // no message exceeds 2 GiB
      uint8_t byte = *at++;
      length |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    if (length > size()) return false;
    value = {at, at + length};
    at += length;
    return true;
  }
};

bool is_utf8(std::string_view text) {
  const auto *at = reinterpret_cast<const uint8_t *>(text.data()), *end = at + text.size();
  while (at < end) {
    uint8_t first = *at++;
    if (first < 0x80) continue;
    int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || end - at < more) return false;
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;    // not longer than needed
    uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;  // no surrogate, nothing above U+10FFFF
    for (; more; more--, low = 0x80, high = 0xbf)
      if (*at < low || *at++ > high) return false;
  }
  return true;
}

// ---- BLAKE2b (RFC 7693) with 16 bytes, of many strings at once ----

constexpr size_t kBlock = 128;
constexpr uint64_t kBlakeStart[8] = {0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
                                     0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};
constexpr uint64_t kBlakeOptions = 0x01010000 | 16;  // no key, and 16 bytes
constexpr uint8_t kBlakeOrder[12][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3}};

// A word of each of some strings. (An alias of a size that a template is given does not have it with all compilers.)
template <size_t kLanes> struct Word;
template <> struct Word<1> { typedef uint64_t Lane __attribute__((vector_size(8))); };
template <> struct Word<4> { typedef uint64_t Lane __attribute__((vector_size(32))); };
template <> struct Word<8> { typedef uint64_t Lane __attribute__((vector_size(64))); };

// The states of some strings.
template <size_t kLanes> struct Blakes {
  using Lane = typename Word<kLanes>::Lane;

  Lane state[8], hashed, last;  // `last` has all bits set at the last block of a string
  const uint8_t *blocks[kLanes];
};

// A macro, not a function: a function that is inlined does not get the instructions of the function around it.
#define BLAKE_STEP(a, b, c, d, first, second)           \
  a += b + (first), d ^= a, d = d >> 32 | d << 32;      \
  c += d, b ^= c, b = b >> 24 | b << 40;                \
  a += b + (second), d ^= a, d = d >> 16 | d << 48;     \
  c += d, b ^= c, b = b >> 63 | b << 1

// Hashes a block of each string.
#define BLAKE_BLOCKS                                                                   \
  Lane words[16] = {}, v[16];                                                          \
  for (size_t i = 0; i < 16; i++)                                                      \
    for (size_t lane = 0; lane < sizeof(Lane) / 8; lane++)                             \
      words[i][lane] = load<uint64_t>(from.blocks[lane] + 8 * i);                      \
  for (size_t i = 0; i < 8; i++) v[i] = from.state[i], v[i + 8] = Lane{} + kBlakeStart[i]; \
  v[12] ^= from.hashed, v[14] ^= from.last;                                            \
  _Pragma("GCC unroll 12") for (const auto &order : kBlakeOrder) {                     \
    BLAKE_STEP(v[0], v[4], v[8], v[12], words[order[0]], words[order[1]]);             \
    BLAKE_STEP(v[1], v[5], v[9], v[13], words[order[2]], words[order[3]]);             \
    BLAKE_STEP(v[2], v[6], v[10], v[14], words[order[4]], words[order[5]]);            \
    BLAKE_STEP(v[3], v[7], v[11], v[15], words[order[6]], words[order[7]]);            \
    BLAKE_STEP(v[0], v[5], v[10], v[15], words[order[8]], words[order[9]]);            \
    BLAKE_STEP(v[1], v[6], v[11], v[12], words[order[10]], words[order[11]]);          \
    BLAKE_STEP(v[2], v[7], v[8], v[13], words[order[12]], words[order[13]]);           \
    BLAKE_STEP(v[3], v[4], v[9], v[14], words[order[14]], words[order[15]]);           \
  }                                                                                    \
  for (size_t i = 0; i < 8; i++) from.state[i] ^= v[i] ^ v[i + 8]

void hash_blocks(Blakes<1> &from) {
  using Lane = Blakes<1>::Lane;
  BLAKE_BLOCKS;
}
#if defined(__x86_64__)
__attribute__((target("avx2"))) void hash_blocks(Blakes<4> &from) {
  using Lane = Blakes<4>::Lane;
  BLAKE_BLOCKS;
}
__attribute__((target("avx512f"))) void hash_blocks(Blakes<8> &from) {
  using Lane = Blakes<8>::Lane;
  BLAKE_BLOCKS;
}
#endif

// Hashes strings: a place that is done with one begins the next.
template <size_t kLanes>
void blake_hashes(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count, uint64_t *hashes) {
  static const uint8_t none[kBlock] = {};
  Blakes<kLanes> at{};
  uint8_t ends[kLanes][kBlock];  // the last block of a string is filled with zeros
  Span left[kLanes] = {};
  int64_t of[kLanes], next = 0, active = 0;
  auto begin = [&](size_t lane) {
    of[lane] = next < count ? next : -1;
    at.blocks[lane] = none, at.last[lane] = 0, at.hashed[lane] = 0;
    if (next == count) return;
    left[lane] = {buffer + starts[next], buffer + stops[next]};
    for (size_t i = 0; i < 8; i++) at.state[i][lane] = kBlakeStart[i] ^ (i ? 0 : kBlakeOptions);
    next++, active++;
  };
  for (size_t lane = 0; lane < kLanes; lane++) begin(lane);
  while (active) {
    for (size_t lane = 0; lane < kLanes; lane++) {
      if (of[lane] < 0) continue;
      Span &rest = left[lane];
      size_t size = std::min(rest.size(), kBlock);
      at.blocks[lane] = rest.at;
      if (rest.size() <= kBlock) {
        if (size) memcpy(ends[lane], rest.at, size);
        memset(ends[lane] + size, 0, kBlock - size);
        at.blocks[lane] = ends[lane], at.last[lane] = ~uint64_t(0);
      }
      at.hashed[lane] += size, rest.at += size;
    }
    hash_blocks(at);
    for (size_t lane = 0; lane < kLanes; lane++) {
      if (of[lane] < 0 || !at.last[lane]) continue;
      for (int i = 0; i < 2; i++) hashes[2 * of[lane] + i] = __builtin_bswap64(at.state[i][lane]);
      active--, begin(lane);
    }
  }
}

// ---- columns ----

enum Kind { kNone, kBytes, kFloat, kInt, kKinds };

// Numbers end to end. Unlike those of std::vector, new ones are not set to zero, and realloc grows large ones without a
// copy: that is half the time of long lists.
template <class T> class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer &) = delete;
  ~Buffer() { free(data_); }

  const T *data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return !size_; }
  T back() const { return data_[size_ - 1]; }
  T operator[](size_t i) const { return data_[i]; }

  // Room for `count` more, of which the values are to be set.
  T *extend(size_t count) {
    if (size_ + count > capacity_) {
      size_t capacity = std::max<size_t>(size_ + count, 2 * capacity_);
      void *grown = realloc(data_, capacity * sizeof(T));
      if (!grown) throw std::bad_alloc();
      data_ = static_cast<T *>(grown), capacity_ = capacity;
    }
    size_ += count;
    return data_ + size_ - count;
  }

  void add(T value) { *extend(1) = value; }
  void cut(size_t size) { size_ = size; }

 private:
  T *data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
};

// Numbers that are mostly those of an arithmetic sequence, as the rows that have a key and the lengths of their lists
// are: they are held once one differs.
template <int64_t kStep> class Sequence {
 public:
  size_t size() const { return size_; }

  void add(int64_t value) {
    if (regular_) {
      if (!size_) first_ = value;
      if (value == first_ + kStep * int64_t(size_)) return void(size_++);
      hold();
    }
    held_.add(value);
    size_++;
  }

  void cut(size_t size) {
    size_ = size;
    if (!regular_) held_.cut(size);
  }

  int64_t back() const { return (*this)[size_ - 1]; }
  int64_t operator[](size_t i) const { return regular_ ? first_ + kStep * int64_t(i) : held_.data()[i]; }

  bool is_regular() const { return regular_; }

 private:
  void hold() {
    int64_t *out = held_.extend(size_);
    for (size_t i = 0; i < size_; i++) out[i] = first_ + kStep * int64_t(i);
    regular_ = false;
  }

  Buffer<int64_t> held_;
  size_t size_ = 0;
  int64_t first_ = 0;
  bool regular_ = true;
};

// Stores where the lists of `all` rows begin and end, some of which have none, and which rows have one, a bit each.
template <class Rows, class Lengths>
void put_places(const Rows &rows, const Lengths &lengths, size_t all, int64_t *ends, uint8_t *valid) {
  int64_t end = 0;
  size_t row = 0;
  for (size_t i = 0; i < rows.size(); i++) {
    for (auto at = size_t(rows[i]); row <= at; row++) ends[row] = end;
    end += lengths[i];
  }
  for (; row <= all; row++) ends[row] = end;
  std::fill_n(valid, (all + 7) / 8, uint8_t(0));
  for (size_t i = 0; i < rows.size(); i++) valid[rows[i] >> 3] |= uint8_t(1 << (rows[i] & 7));
}

// The lists of one kind under a key: of several rows, or of several steps.
struct Lists {
  Sequence<1> rows;
  Sequence<0> lengths;
  Buffer<int64_t> ints, offsets;
  Buffer<float> floats;
  Buffer<uint8_t> bytes;

  // Removes the lists of rows from `row` on.
  void forget(int64_t row) {
    while (rows.size() && rows.back() >= row) {
      auto count = size_t(lengths.back());
      if (!offsets.empty()) {
        offsets.cut(offsets.size() - count);
        bytes.cut(size_t(offsets.back()));
      }
      if (!ints.empty()) ints.cut(ints.size() - count);
      if (!floats.empty()) floats.cut(floats.size() - count);
      rows.cut(rows.size() - 1), lengths.cut(lengths.size() - 1);
    }
  }

  void add_string(Span value) {
    if (offsets.empty()) offsets.add(0);
    copy(bytes.extend(value.size()), value);
    offsets.add(int64_t(bytes.size()));
  }

  bool add_strings(Span list) {
    size_t before = offsets.size();
    for (Span value; list.at < list.end;) {
      if (list.field(kFirst, value)) {
        add_string(value);
        continue;
      }
      offsets.cut(before);
      bytes.cut(before ? size_t(offsets.back()) : 0);
      return false;
    }
    lengths.add(int64_t(offsets.size() - std::max<size_t>(before, offsets.empty() ? 0 : 1)));
    return true;
  }

  bool add_floats(Span packed) {
    if (packed.size() % 4) return false;
    copy(floats.extend(packed.size() / 4), packed);
    lengths.add(int64_t(packed.size() / 4));
    return true;
  }

  // Where a varint begins is known when the one before it is read, so that two halves are read at the same time; their
  // groups of 7 bits are joined afterwards, which compilers do for several numbers at once.
  bool add_ints(Span packed) {
    if (packed.at < packed.end && packed.end[-1] >= 0x80) return false;
    const uint8_t *middle = packed.at + packed.size() / 2;
    while (middle > packed.at && middle[-1] >= 0x80) middle++;
    size_t first = stops_in({packed.at, middle}), second = stops_in({middle, packed.end});
    int64_t *begin = ints.extend(first + second), *half = begin + first, *out = begin, *other = half;
    const uint8_t *at = packed.at, *behind = middle;
    bool short_ones = true;
    while (at < middle && packed.end - behind >= 8 && short_ones)
      short_ones = take_bytes(at, out) && take_bytes(behind, other);
    while (at < middle && packed.end - at >= 8 && short_ones) short_ones = take_bytes(at, out);
    while (packed.end - behind >= 8 && short_ones) short_ones = take_bytes(behind, other);
    if (!short_ones) return ended(read_varints(packed.at, packed.end, begin), first + second);
    for (int64_t *next = begin; next < out; next++) *next = joined(*next);
    for (int64_t *next = half; next < other; next++) *next = joined(*next);
    return ended(read_varints(at, middle, out) && read_varints(behind, packed.end, other), first + second);
  }

  // Keeps or drops the last numbers.
  bool ended(bool right, size_t count) {
    if (right) lengths.add(int64_t(count));
    else ints.cut(ints.size() - count);
    return right;
  }

  static size_t stops_in(Span packed) {
    size_t count = 0;
    for (const uint8_t *at = packed.at; at < packed.end; at++) count += *at < 0x80;
    return count;
  }

  // The bytes of a varint of up to 8, where as many can be read.
  static bool take_bytes(const uint8_t *&at, int64_t *&out) {
    auto word = load<uint64_t>(at), stops = ~word & 0x8080808080808080;
    if (!stops) return false;
    at += (__builtin_ctzll(stops) >> 3) + 1;
    *out++ = int64_t(word & (stops ^ (stops - 1)));
    return true;
  }

  // The groups of 7 bits of up to 8 bytes as a number.
  static int64_t joined(int64_t bytes) {
    auto word = uint64_t(bytes);
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    return int64_t((word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4);
  }

  // Varints of any size up to the end of one.
  static bool read_varints(const uint8_t *at, const uint8_t *end, int64_t *out) {
    while (at < end) {
      uint64_t value = *at & 0x7f;
      for (int shift = 7; *at++ >= 0x80; shift += 7) {
        if (shift > 63) return false;
        value |= uint64_t(*at & 0x7f) << shift;
      }
      *out++ = int64_t(value);
    }
    return true;
  }

  static void copy(void *to, Span from) {
    if (from.size()) memcpy(to, from.at, from.size());
  }

  // A Feature's list, its only field; numbers are packed.
  bool add(Kind kind, Span list) {
    Span packed;
    if (kind == kBytes) return add_strings(list);
    return unpack(list, packed) && (kind == kFloat ? add_floats(packed) : add_ints(packed));
  }

  // Whether `add` takes it.
  static bool takes(Kind kind, Span list) {
    Span part;
    if (kind == kBytes) {
      while (list.at < list.end)
        if (!list.field(kFirst, part)) return false;
      return true;
    }
    if (!unpack(list, part)) return false;
    if (kind == kFloat) return part.size() % 4 == 0;
    int more = 0;  // bytes of a varint that others follow
    for (; part.at < part.end; part.at++)
      if (*part.at < 0x80) more = 0;
      else if (++more > 9) return false;
    return !more;
  }

  // The bytes of the numbers of a list.
  static bool unpack(Span list, Span &packed) {
    packed = {list.at, list.at};
    return list.at == list.end || (list.field(kFirst, packed) && list.at == list.end);
  }
};

struct Key {
  std::string name;
  bool wanted = true;                 // whether its values are kept
  std::unique_ptr<Lists> of[kKinds];  // most keys have one kind
  int64_t last = -1;                  // the record that had it last
  Buffer<int64_t> rows, counts;       // of a feature list: the records that have it, and their steps
  int64_t steps = 0, before_steps = 0;

  // A Feature with at most one list.
  bool feature(Span value, int64_t row) {
    Kind kind = kNone;
    Span list{value.at, value.at};
    if (value.at < value.end) {
      kind = *value.at == 0x0a ? kBytes : *value.at == 0x12 ? kFloat : *value.at == 0x1a ? kInt : kNone;
      if (kind == kNone || !value.field(*value.at, list) || value.at < value.end) return false;
    }
    if (!wanted) return kind == kNone || Lists::takes(kind, list);
    if (!of[kind]) of[kind] = std::make_unique<Lists>();
    Lists &lists = *of[kind];
    if (kind == kNone) lists.lengths.add(0);
    else if (!lists.add(kind, list)) return false;
    lists.rows.add(row);
    return true;
  }

  // A list of one value, or of floats.
  void value(Kind kind, Span value, int64_t record) {
    if (!wanted) return;
    Lists &lists = *of[kind];
    lists.rows.add(record);
    if (kind == kFloat) return void(lists.add_floats(value));
    lists.lengths.add(1);
    if (kind == kInt) lists.ints.add(*value.at);
    if (kind == kBytes) lists.add_string(value);
  }

  bool feature_list(Span value, int64_t record) {
    before_steps = steps;
    rows.add(record), counts.add(0);
    for (Span step; value.at < value.end;)
      if (!value.field(kFirst, step) || !feature(step, steps++)) return false;
    counts.cut(counts.size() - 1);
    counts.add(steps - before_steps);
    return true;
  }

  void forget(int64_t record, bool is_list) {
    for (auto &lists : of)
      if (lists) lists->forget(is_list ? before_steps : record);
    if (!is_list) return;
    if (rows.size() && rows.back() == record) rows.cut(rows.size() - 1), counts.cut(rows.size());
    steps = before_steps;
  }
};

// The bytes of an entry before its only value, as an earlier record had them at this place: most records differ in
// their values alone.
struct Expected {
  static constexpr size_t kMost = 64;
  static constexpr int kTries = 16;  // of a place where values differ in size

  uint8_t bytes[kMost];
  size_t size = 0, value = 0;  // of these bytes, and of the value after them
  Key *key = nullptr;
  size_t next = 0;
  Kind kind = kNone;
  int tries = 0;

  // Whether the next entry is as expected; the bytes include all lengths.
  bool is_at(Span entries, int64_t record) const {
    if (!size || entries.size() < size + value) return false;
    for (size_t i = 0; i + 8 < size; i += 8)
      if (load<uint64_t>(entries.at + i) != load<uint64_t>(bytes + i)) return false;
    if (load<uint64_t>(entries.at + size - 8) != load<uint64_t>(bytes + size - 8)) return false;
    return key->last != record && (kind != kInt || entries.at[size] < 0x80);
  }

  void learn(Span entry, Key *of, size_t after) {
    size = 0;
    if (tries++ >= kTries) return;
    Span whole = entry, rest, name, feature, list, packed;
    if (!whole.field(kFirst, rest) || !rest.field(kFirst, name) || !rest.field(kSecond, feature)) return;
    uint8_t tag = feature.at < feature.end ? *feature.at : 0;
    if (!tag || !feature.field(tag, list) || !list.field(kFirst, packed) || list.at < list.end) return;
    kind = Kind(tag >> 3);
    auto before = size_t(packed.at - entry.at);
    if (before < 8 || before > kMost || (kind == kInt && packed.size() != 1)) return;
    memcpy(bytes, entry.at, before);
    size = before, value = packed.size(), key = of, next = after;
  }
};

struct Section {
  const std::unordered_set<std::string_view> *wanted = nullptr;  // null: all
  std::vector<std::unique_ptr<Key>> keys;
  std::unordered_map<std::string_view, Key *> by_name;
  std::vector<Expected> expected;

  // Records that were written alike have their keys in one order: `next` is the likely place.
  Key *find(Span name, size_t &next) {
    std::string_view text(reinterpret_cast<const char *>(name.at), name.size());
    if (next < keys.size() && keys[next]->name == text) return keys[next++].get();
    auto found = by_name.find(text);
    if (found != by_name.end()) return found->second;
    if (!is_utf8(text)) return nullptr;
    keys.push_back(std::make_unique<Key>());
    Key *key = keys.back().get();
    key->name = text;
    key->wanted = !wanted || wanted->count(text);
    by_name.emplace(key->name, key);
    next = keys.size();
    return key;
  }

  bool map(Span entries, int64_t record, bool steps) {
    size_t next = 0, place = 0;
    for (Span entry, name, value; entries.at < entries.end; place++) {
      if (place == expected.size()) expected.emplace_back();
      Expected &likely = expected[place];
      if (likely.is_at(entries, record)) {
        likely.key->last = record;
        likely.key->value(likely.kind, {entries.at + likely.size, entries.at + likely.size + likely.value}, record);
        entries.at += likely.size + likely.value;
        next = likely.next;
        continue;
      }
      Span whole = entries;
      if (!entries.field(kFirst, entry) || !entry.field(kFirst, name) || !entry.field(kSecond, value)) return false;
      if (entry.at < entry.end) return false;
      Key *key = find(name, next);
      if (!key || key->last == record) return false;
      key->last = record;
      if (!(steps ? key->feature_list(value, record) : key->feature(value, record))) return false;
      if (!steps) likely.learn({whole.at, entries.at}, key, next);
    }
    return true;
  }

  void forget(int64_t record, bool steps) {
    for (auto &key : keys)
      if (key->last == record) key->forget(record, steps);
  }
};

// The lists of one kind under a key.
struct Part {
  const Key *key;
  Lists *lists;
  bool steps;

  size_t count(size_t records) const { return steps ? size_t(key->steps) : records; }

  // The number of values that every list has; 0 where they differ, or some are missing.
  int64_t width(size_t records) const {
    if (!lists || !lists->rows.size() || lists->rows.size() != count(records)) return 0;
    return lists->lengths.is_regular() ? lists->lengths[0] : 0;
  }
};

constexpr uint32_t kAnyWidth = ~uint32_t(0);

struct Decoded {
  Section features, lists;
  size_t records = 0;
  std::vector<Part> parts;
  std::vector<int64_t> numbers;

  bool record(Span data, int64_t number, bool sequence) {
    Span section;
    if (data.at < data.end && *data.at == kFirst)
      if (!data.field(kFirst, section) || !features.map(section, number, false)) return false;
    if (sequence && data.at < data.end)
      if (!data.field(kSecond, section) || !lists.map(section, number, true)) return false;
    return data.at == data.end;
  }

  // Copies the values of a key if every record has `width` of a kind. Strings become the address of their bytes, which
  // are not copied, and their offsets. Of lists of any width, `out` gets the addresses of the values and of the offsets
  // of strings, the number of values, and the length of each list.
  bool copy(std::string_view name, int kind, uint32_t width, uint8_t *out) const {
    auto found = features.by_name.find(name);
    if (found == features.by_name.end() || !found->second->of[kind]) return false;
    const Lists &lists = *found->second->of[kind];
    if (lists.rows.size() != records) return false;
    auto put = [&out](const void *at) { store<uint64_t>(out, reinterpret_cast<uintptr_t>(at)), out += 8; };
    if (width == kAnyWidth) {
      size_t count = lists.offsets.empty() ? 0 : lists.offsets.size() - 1;
      if (kind == kBytes) put(lists.bytes.data());
      if (kind == kFloat) put(lists.floats.data()), count = lists.floats.size();
      if (kind == kInt) put(lists.ints.data()), count = lists.ints.size();
      put(lists.offsets.data());
      store<uint64_t>(out, count);
      for (size_t row = 0; row < records; row++) store<int64_t>(out += 8, lists.lengths[row]);
      return true;
    }
    if (!lists.lengths.is_regular() || lists.lengths[0] != int64_t(width)) return false;
    if (kind == kFloat) memcpy(out, lists.floats.data(), 4 * lists.floats.size());
    if (kind == kInt) memcpy(out, lists.ints.data(), 8 * lists.ints.size());
    if (kind == kBytes) put(lists.bytes.data()), memcpy(out, lists.offsets.data(), 8 * lists.offsets.size());
    return true;
  }

  void describe(Section &section, bool steps) {
    for (auto &key : section.keys) {
      if (!key->wanted) continue;
      size_t before = parts.size();
      for (int kind = 0; kind < kKinds; kind++)
        if (key->of[kind] && key->of[kind]->rows.size()) add({key.get(), key->of[kind].get(), steps}, Kind(kind));
      if (steps && parts.size() == before && !key->rows.empty()) add({key.get(), nullptr, true}, kNone);
    }
  }

  void add(Part part, Kind kind) {
    auto address = [](const void *at) { return int64_t(reinterpret_cast<uintptr_t>(at)); };
    const Key &key = *part.key;
    const void *values = nullptr;
    int64_t places = 0;
    size_t count = 0;
    if (kind == kBytes) {
      if (part.lists->offsets.empty()) part.lists->offsets.add(0);
      values = part.lists->bytes.data(), places = address(part.lists->offsets.data());
      count = part.lists->offsets.size() - 1;
    } else if (kind == kFloat) {
      values = part.lists->floats.data(), count = part.lists->floats.size();
    } else if (kind == kInt) {
      values = part.lists->ints.data(), count = part.lists->ints.size();
    }
    parts.push_back(part);
    numbers.insert(numbers.end(),
                   {part.steps, address(key.name.data()), int64_t(key.name.size()), kind, int64_t(part.count(records)),
                    part.width(records), part.lists ? int64_t(part.lists->rows.size()) : 0, address(values),
                    int64_t(count), places, int64_t(key.rows.size())});
  }
};

// ---- columns to records ----

// What a copy in blocks may write too much; the next bytes of the record are written over it.
constexpr int64_t kSlack = 16;

size_t varint_size(uint64_t value) { return size_t(70 - __builtin_clzll(value | 1)) / 7; }

uint8_t *put_varint(uint8_t *out, uint64_t value) {
  for (; value > 0x7f; value >>= 7) *out++ = uint8_t(value | 0x80);
  *out++ = uint8_t(value);
  return out;
}

uint8_t *put(uint8_t *out, const void *data, size_t size) {
  if (size) memcpy(out, data, size);  // without any strings there is no place
  return out + size;
}

// Varints of numbers below 2 to the 28th. Their groups of 7 bits are spread to bytes without a branch, several at once;
// then they are laid down, each over what the one before wrote too much.
uint8_t *put_varints(uint8_t *out, const uint8_t *values, int64_t from, int64_t to) {
  constexpr int64_t kAtOnce = 64;
  uint32_t words[kAtOnce], sizes[kAtOnce];
  for (int64_t i = from; i < to; i += kAtOnce) {
    int64_t count = std::min(kAtOnce, to - i);
    for (int64_t k = 0; k < count; k++) {
      auto value = uint32_t(load<uint64_t>(values + 8 * (i + k)));
      uint32_t two = (value + 0xfffff80) >> 28, three = (value + 0xfffc000) >> 28, four = (value + 0xfe00000) >> 28;
      value = (value & 0x00003fff) | (value & 0x0fffc000) << 2;
      value = (value & 0x007f007f) | (value & 0x3f803f80) << 1;
      words[k] = value | two << 7 | three << 15 | four << 23;
      sizes[k] = 1 + two + three + four;
    }
    for (int64_t k = 0; k < count; k++) {
      store<uint32_t>(out, words[k]);
      out += sizes[k];
    }
  }
  return out;
}

// The bytes of the varints of numbers below 2 to the 28th together, with no more than additions and shifts, which
// compilers do for several numbers at once.
uint64_t varints_size(const uint8_t *values, int64_t from, int64_t to) {
  auto total = uint64_t(to - from);
  for (int64_t i = from; i < to; i++) {
    auto value = load<uint64_t>(values + 8 * i);
    total += ((value + 0xfffff80) >> 28) + ((value + 0xfffc000) >> 28) + ((value + 0xfe00000) >> 28);
  }
  return total;
}

// The values of one key: of each row a list, or of each step of each row.
struct Column {
  std::string_view key;
  Kind kind;
  int64_t width;                // values in every list; -1: by `ends`
  const int64_t *ends;          // where lists begin and end, in values
  const uint8_t *values;        // numbers, or the bytes of strings
  const int64_t *places;        // where strings begin and end
  const uint8_t *const *parts;  // in place of `values`: where each string is
  const uint8_t *present;       // the rows that have the key; null: all
  const int64_t *steps;         // where the steps of rows begin and end, in lists

  uint8_t tag = 0;
  size_t widest = 1;             // bytes of the largest varint
  std::vector<uint32_t> bodies;  // the bytes of every list; of one, if all have as many
  bool even = true;

  // The start of an entry whose lengths take a byte each, which is copied in blocks; its lengths are stored into it.
  std::vector<uint8_t> start;
  size_t start_size = 0, small = 0;

  explicit Column(const int64_t *from)
      : key(reinterpret_cast<const char *>(from[0]), size_t(from[1])), kind(Kind(from[2])), width(from[3]),
        ends(reinterpret_cast<const int64_t *>(from[4])), values(reinterpret_cast<const uint8_t *>(from[5])),
        places(reinterpret_cast<const int64_t *>(from[6])), parts(reinterpret_cast<const uint8_t *const *>(from[7])),
        present(reinterpret_cast<const uint8_t *>(from[8])), steps(reinterpret_cast<const int64_t *>(from[9])),
        tag(uint8_t(kind << 3 | 2)) {}

  int64_t begin(int64_t list) const { return width < 0 ? ends[list] : list * width; }
  int64_t end(int64_t list) const { return width < 0 ? ends[list + 1] : (list + 1) * width; }
  size_t body(int64_t list) const { return bodies[even ? 0 : size_t(list)]; }

  // The bytes of a list's values, without its own tag and length.
  uint64_t body_size(int64_t list) {
    int64_t from = begin(list), to = end(list);
    if (from == to) return 0;
    if (kind == kFloat) {
      uint64_t packed = 4 * uint64_t(to - from);
      return 1 + varint_size(packed) + packed;
    }
    uint64_t total = 0;
    if (kind == kBytes) {
      for (int64_t i = from; i < to; i++) {
        auto size = uint64_t(places[i + 1] - places[i]);
        total += 1 + varint_size(size) + size;
      }
      return total;
    }
    uint64_t bits = 0;
    for (int64_t i = from; i < to; i++) bits |= uint64_t(number(i));
    widest = std::max(widest, varint_size(bits));
    if (bits < 1 << 28) total = varints_size(values, from, to);
    else
      for (int64_t i = from; i < to; i++) total += varint_size(uint64_t(number(i)));
    return 1 + varint_size(total) + total;
  }

  int64_t number(int64_t i) const { return load<int64_t>(values + 8 * i); }

  // Measures the lists.
  void measure(int64_t lists) {
    bodies.assign(1, 0);
    if (has_one_size(lists)) lists = std::min<int64_t>(1, lists);
    for (int64_t i = 0; i < lists; i++) {
      auto body = uint32_t(std::min<uint64_t>(body_size(i), uint32_t(-1)));  // too large in any case
      if (even && i && body != bodies[0]) {
        even = false;
        bodies.resize(size_t(lists), uint32_t(bodies[0]));
      }
      if (!even || !i) bodies[size_t(i)] = body;
    }
    if (steps || key.size() >= 122) return;
    small = 122 - key.size();  // the entry then has fewer than 128 bytes
    start.assign((key.size() + 8 + kSlack - 1) / kSlack * kSlack, 0);
    start_size = size_t(put_start(start.data(), 0) - start.data());
  }

  // Whether it is quickly seen that all lists have as many bytes.
  bool has_one_size(int64_t lists) {
    if (width < 0 || kind == kFloat) return width >= 0;
    if (kind == kBytes) {
      int64_t differ = 0;
      for (int64_t i = 1; width == 1 && i < lists; i++) differ |= (places[i + 1] - places[i]) ^ (places[1] - places[0]);
      return width == 1 && !differ;
    }
    uint64_t bits = 0;
    for (int64_t i = 0; i < lists * width; i++) bits |= uint64_t(number(i));
    return bits < 0x80;
  }

  uint64_t entry_size(uint64_t value) const {
    uint64_t entry = 1 + varint_size(key.size()) + key.size() + 1 + varint_size(value) + value;
    return 1 + varint_size(entry) + entry;
  }

  static uint64_t feature_size(uint64_t body) { return 1 + varint_size(body) + body; }

  // Adds the bytes of entries to those of their records.
  void add_sizes(int64_t rows, int64_t *sizes) const {
    if (even && !present && !steps && rows) {
      auto size = int64_t(entry_size(value_size(0)));
      for (int64_t row = 0; row < rows; row++) sizes[row] += size;
      return;
    }
    for (int64_t row = 0; row < rows; row++)
      if (!present || present[row]) sizes[row] += int64_t(entry_size(value_size(row)));
  }

  uint64_t value_size(int64_t row) const {
    if (!steps) return feature_size(body(row));
    uint64_t total = 0;
    for (int64_t step = steps[row]; step < steps[row + 1]; step++) {
      uint64_t feature = feature_size(body(step));
      total += 1 + varint_size(feature) + feature;
    }
    return total;
  }

  uint8_t *put_head(uint8_t *out, uint64_t value) const {
    *out++ = kFirst;
    out = put_varint(out, 1 + varint_size(key.size()) + key.size() + 1 + varint_size(value) + value);
    *out++ = kFirst;
    out = put_varint(out, key.size());
    out = put(out, key.data(), key.size());
    *out++ = kSecond;
    return put_varint(out, value);
  }

  uint8_t *put_start(uint8_t *out, uint64_t body) const {
    out = put_head(out, feature_size(body));
    *out++ = tag;
    return put_varint(out, body);
  }

  uint8_t *put_entry(uint8_t *out, int64_t row) const {
    if (present && !present[row]) return out;
    if (steps) {
      out = put_head(out, value_size(row));
      for (int64_t step = steps[row]; step < steps[row + 1]; step++) {
        *out++ = kFirst;
        out = put_varint(out, feature_size(body(step)));
        *out++ = tag;
        out = put_varint(out, body(step));
        out = put_body(out, step);
      }
      return out;
    }
    size_t bytes = body(row);
    if (bytes >= small) return put_body(put_start(out, bytes), row);
    for (size_t i = 0; i < start.size(); i += kSlack) memcpy(out + i, start.data() + i, kSlack);
    out[1] = uint8_t(start_size - 2 + bytes);
    out[start_size - 3] = uint8_t(2 + bytes);
    out[start_size - 1] = uint8_t(bytes);
    return put_body(out + start_size, row);
  }

  uint8_t *put_body(uint8_t *out, int64_t list) const {
    int64_t from = begin(list), to = end(list);
    if (from == to) return out;
    if (kind == kBytes) {
      for (int64_t i = from; i < to; i++) {
        auto size = size_t(places[i + 1] - places[i]);
        *out++ = kFirst;
        out = put_varint(out, size);
        out = put(out, parts ? parts[i] : values + places[i], size);
      }
      return out;
    }
    *out++ = kFirst;
    if (kind == kFloat) {
      auto size = size_t(4 * (to - from));
      return put(put_varint(out, size), values + 4 * from, size);
    }
    // the bytes of a list include a tag and a length before the numbers
    size_t all = body(list) - 1;
    return put_ints(put_varint(out, all - varint_size(all - varint_size(all))), from, to);
  }

  uint8_t *put_ints(uint8_t *out, int64_t from, int64_t to) const {
    if (widest <= 4 && to - from > 1) return put_varints(out, values, from, to);
    for (int64_t i = from; i < to; i++) out = put_varint(out, uint64_t(number(i)));
    return out;
  }

  // Whether every row has values of the same size at the same place.
  bool is_stamped() const {
    return even && !present && !steps && width >= 0 && !parts && (kind == kFloat || width <= 1);
  }
};

struct Encoding {
  std::vector<Column> features, lists;
  int64_t rows = 0;
  bool sequence = false, framed = false;
  std::vector<int64_t> contexts, sequences;  // the bytes of the two maps of each record

  // Measures the records; returns the first that is too large, or -1.
  int64_t measure(int64_t largest, int64_t *offsets) {
    contexts.assign(size_t(rows), 0);
    for (auto &column : features) column.measure(rows), column.add_sizes(rows, contexts.data());
    if (sequence) sequences.assign(size_t(rows), 0);
    for (auto &column : lists) column.measure(column.steps[rows]), column.add_sizes(rows, sequences.data());
    offsets[0] = 0;
    for (int64_t row = 0; row < rows; row++) {
      int64_t size = map_size(contexts[size_t(row)]);
      if (sequence) size += map_size(sequences[size_t(row)]);
      offsets[row + 1] = size;
      if (size > largest) return row;
    }
    int64_t around = framed ? int64_t(kHeader + kFooter) : 0;
    for (int64_t row = 0; row < rows; row++) offsets[row + 1] += offsets[row] + around;
    return -1;
  }

  static int64_t map_size(int64_t entries) { return 1 + int64_t(varint_size(uint64_t(entries))) + entries; }

  void fill(uint8_t *buffer, const int64_t *offsets) const {
    if (!sequence && rows > 1 &&
        std::all_of(features.begin(), features.end(), [](const Column &column) { return column.is_stamped(); }))
      return stamp(buffer, size_t(offsets[1]));
    for (int64_t row = 0; row < rows; row++) {
      uint8_t *frame = buffer + offsets[row];
      put_record(frame + (framed ? kHeader : 0), row);
      if (framed) seal(frame, size_t(offsets[row + 1] - offsets[row]));
    }
  }

  void put_record(uint8_t *out, int64_t row) const {
    *out++ = kFirst;
    out = put_varint(out, uint64_t(contexts[size_t(row)]));
    for (auto &column : features) out = column.put_entry(out, row);
    if (!sequence) return;
    *out++ = kSecond;
    out = put_varint(out, uint64_t(sequences[size_t(row)]));
    for (auto &column : lists) out = column.put_entry(out, row);
  }

  // Records of one size, which differ in their values alone: the first is copied, and values are stored into it.
  // A few rows at once, which stay in the cache.
  void stamp(uint8_t *buffer, size_t size) const {
    std::vector<uint8_t> first(size + kSlack);
    uint8_t *out = first.data() + (framed ? kHeader : 0);
    std::vector<size_t> places;
    *out++ = kFirst;
    out = put_varint(out, uint64_t(contexts[0]));
    for (auto &column : features) {
      out = column.put_entry(out, 0);
      places.push_back(size_t(out - first.data()) - (column.body(0) ? value_bytes(column) : 0));
    }
    if (framed) seal(first.data(), size);
    int64_t tile = std::max<int64_t>(1, int64_t(kTile / size));
    for (int64_t from = 0; from < rows; from += tile) {
      int64_t count = std::min(tile, rows - from);
      uint8_t *at = buffer + size_t(from) * size;
      for (int64_t i = 0; i < count; i++) memcpy(at + size_t(i) * size, first.data(), size);
      for (size_t i = 0; i < features.size(); i++)
        if (features[i].body(0)) put_values(features[i], at + places[i], size, from, count);
      if (framed)
        for (int64_t i = 0; i < count; i++) {
          uint8_t *frame = at + size_t(i) * size;
          store<uint32_t>(frame + size - kFooter, masked_crc(frame + kHeader, size - kHeader - kFooter));
        }
    }
  }

  static constexpr size_t kTile = 1 << 15;

  static size_t value_bytes(const Column &column) {
    if (column.kind == kFloat) return size_t(4 * column.width);
    if (column.kind == kInt) return varint_size(uint64_t(column.number(0)));
    return size_t(column.places[1] - column.places[0]);
  }

  static void put_values(const Column &column, uint8_t *out, size_t stride, int64_t from, int64_t count) {
    if (column.kind == kInt) {
      for (int64_t i = 0; i < count; i++, out += stride) put_varint(out, uint64_t(column.number(from + i)));
      return;
    }
    size_t size = value_bytes(column);
    const uint8_t *in = column.values + size_t(from) * size;
    if (column.kind == kBytes) in = column.values + column.places[from];
    if (size == 4)
      for (int64_t i = 0; i < count; i++, out += stride, in += 4) memcpy(out, in, 4);
    else if (size == 8)
      for (int64_t i = 0; i < count; i++, out += stride, in += 8) memcpy(out, in, 8);
    else
      for (int64_t i = 0; i < count; i++, out += stride, in += size) memcpy(out, in, size);
  }
};

}  // namespace

// The hash of this file when it was compiled.
EXPORTED const char *rs_source_hash() { return SOURCE_HASH; }

// The masked CRC of bytes `starts` to `stops`, of each of `count` records.
EXPORTED void rs_masked_crcs(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count,
                             uint32_t *crcs) {
  for (int64_t i = 0; i < count; i++) crcs[i] = masked_crc(buffer + starts[i], size_t(stops[i] - starts[i]));
}

// The hash of bytes `starts` to `stops`, of each of `count` strings: `hashes.py` says which.
EXPORTED void rs_hashes(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count,
                        uint64_t *hashes) {
  for (int64_t i = 0; i < count; i++) {
    const uint8_t *at = buffer + starts[i];
    size_t left = size_t(stops[i] - starts[i]);
    uint64_t sum = splitmix64(left + 1), place = 0, last = 0;
    for (; left >= sizeof last; left -= sizeof last, at += sizeof last)
      sum += splitmix64(load<uint64_t>(at) ^ (place += kGolden));
    if (left) memcpy(&last, at, left), sum += splitmix64(last ^ (place + kGolden));
    hashes[i] = splitmix64(sum);
  }
}

// The BLAKE2b hashes of 16 bytes of strings, as two numbers each, of which the first byte is the highest.
EXPORTED void rs_keys(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count,
                      uint64_t *hashes) {
#if defined(__x86_64__)
  if (count > 4 && __builtin_cpu_supports("avx512f")) return blake_hashes<8>(buffer, starts, stops, count, hashes);
  if (count > 1 && __builtin_cpu_supports("avx2")) return blake_hashes<4>(buffer, starts, stops, count, hashes);
#endif
  blake_hashes<1>(buffer, starts, stops, count, hashes);
}

// The places where up to `most` whole frames begin from byte `at` on, and where the last one ends: one more than the
// number of frames, which is returned.
EXPORTED int64_t rs_frames(const uint8_t *buffer, int64_t size, int64_t at, int64_t *places, int64_t most) {
  int64_t count = 0;
  places[0] = at;
  while (count < most && size - at >= int64_t(kHeader + kFooter)) {
    uint64_t length = load<uint64_t>(buffer + at);
    if (length > uint64_t(size - at) - kHeader - kFooter || !is_header(buffer + at)) break;
    at += int64_t(kHeader + length + kFooter);
    places[++count] = at;
  }
  return count;
}

// The places from byte `at` on where up to `most` headers of lengths up to `longest` are; returns their number.
EXPORTED int64_t rs_headers(const uint8_t *buffer, int64_t size, int64_t at, uint64_t longest, int64_t *places,
                            int64_t most) {
  int64_t count = 0;
  for (; count < most && at + int64_t(kHeader) <= size; at++)
    if (load<uint64_t>(buffer + at) <= longest && is_header(buffer + at)) places[count++] = at;
  return count;
}

// Writes the header before and the CRC after the data of each record, for which there is room.
EXPORTED void rs_seal(uint8_t *buffer, const int64_t *offsets, int64_t count) {
  for (int64_t i = 0; i < count; i++) seal(buffer + offsets[i], size_t(offsets[i + 1] - offsets[i]));
}

// Measures records of columns, each of ten numbers: the address and the size of its key, its kind, the values in every
// list (-1: they differ), and the addresses that `Column` has, or 0. `lists` is -1 for Examples. Stores where records
// begin and end, of which `framed` ones have a header and a footer. Returns what `rs_fill` takes, or null where there
// is no memory; stores the first record of more than `largest` bytes, whose size follows its number in `offsets`, or -1.
EXPORTED void *rs_measure(const int64_t *columns, int64_t features, int64_t lists, int64_t rows, int64_t largest,
                          int32_t framed, int64_t *offsets, int64_t *large) {
  try {
    auto encoding = std::make_unique<Encoding>();
    encoding->rows = rows, encoding->framed = framed != 0, encoding->sequence = lists >= 0;
    for (int64_t i = 0; i < features; i++) encoding->features.emplace_back(columns + 10 * i);
    for (int64_t i = 0; i < lists; i++) encoding->lists.emplace_back(columns + 10 * (features + i));
    *large = encoding->measure(largest, offsets);
    return encoding.release();
  } catch (const std::exception &) {
    return nullptr;
  }
}

// Writes measured records to a buffer, which needs 16 bytes more than they have; null writes nothing. Returns whether
// there was memory.
EXPORTED int32_t rs_fill(void *measured, uint8_t *buffer, const int64_t *offsets) {
  std::unique_ptr<Encoding> encoding(static_cast<Encoding *>(measured));
  try {
    if (buffer) encoding->fill(buffer, offsets);
    return 1;
  } catch (const std::exception &) {
    return 0;
  }
}

// Decodes records that are written as usual to columns; sets `odd` for the others, which have no values. Of `wanted`
// keys, each after its size in four bytes, the values are kept; where these are null, of all. Returns what `rs_parts` and
// `rs_free` take; null where there is no memory.
EXPORTED void *rs_decode(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count,
                         int32_t sequence, const uint8_t *wanted, int64_t size, uint8_t *odd) {
  try {
    auto decoded = std::make_unique<Decoded>();
    std::unordered_set<std::string_view> keys;
    for (const uint8_t *at = wanted; wanted && at < wanted + size; at += 4 + load<uint32_t>(at))
      keys.emplace(reinterpret_cast<const char *>(at + 4), load<uint32_t>(at));
    if (wanted) decoded->features.wanted = decoded->lists.wanted = &keys;
    decoded->records = size_t(count);
    for (int64_t i = 0; i < count; i++) {
      odd[i] = !decoded->record({buffer + starts[i], buffer + stops[i]}, i, sequence != 0);
      if (odd[i]) decoded->features.forget(i, false), decoded->lists.forget(i, true);
    }
    decoded->describe(decoded->features, false);
    decoded->describe(decoded->lists, true);
    return decoded.release();
  } catch (const std::exception &) {
    return nullptr;
  }
}

// Copies the values of keys, each to one of `out`, as `Decoded::copy` says. `keys` has for each key the size of its name,
// the kind and the number of values in a record (all bits: any number), four bytes each, and the name. Returns 0 for
// records with other kinds or numbers, or without such a list.
EXPORTED int32_t rs_values(void *decoded, const uint8_t *keys, int64_t size, uint8_t *const *out) {
  auto &found = *static_cast<Decoded *>(decoded);
  if (!found.records) return 0;
  for (const uint8_t *at = keys, *end = keys + size; at < end; out++) {
    auto length = load<uint32_t>(at), kind = load<uint32_t>(at + 4), width = load<uint32_t>(at + 8);
    std::string_view name(reinterpret_cast<const char *>(at + 12), length);
    if (!found.copy(name, int(kind), width, *out)) return 0;
    at += 12 + length;
  }
  return 1;
}

// Eleven numbers a part, the lists of one kind under a key: whether it is of a feature list; the address and the size of
// the key; the kind; how many records or steps there are; how many values each has, or 0 where they differ; how many of
// them have a list; the address of the values, how many there are, and the address of where strings begin and end; how
// many records have the feature list.
EXPORTED const int64_t *rs_parts(void *decoded, int64_t *count) {
  auto &numbers = static_cast<Decoded *>(decoded)->numbers;
  *count = int64_t(numbers.size()) / 11;
  return numbers.data();
}

// Stores where the lists of a part begin and end, or with `steps` the steps of records: one more than there are. A bit
// of `valid` is set for each that is there.
EXPORTED void rs_places(void *decoded, int64_t number, int32_t steps, int64_t *ends, uint8_t *valid) {
  auto &found = *static_cast<Decoded *>(decoded);
  const Part &part = found.parts[size_t(number)];
  if (steps) return put_places(part.key->rows, part.key->counts, found.records, ends, valid);
  if (part.lists) return put_places(part.lists->rows, part.lists->lengths, part.count(found.records), ends, valid);
  const Buffer<int64_t> none;
  put_places(none, none, part.count(found.records), ends, valid);
}

// The frames of records of mapped files, as `store/index.py` has their offsets, and where their data begin and end once
// they are copied one after another: one more than `count`. `files` has six numbers: how many files there are, and the
// addresses of the number of the first record of each and of the last, of the addresses of its groups, of those of its
// residuals, of its size, and of where it is mapped. Stops at a record of a file that is not mapped, and returns which it
// is; at one whose frame would not be in its file, and returns a negative number, -1 for the first.
EXPORTED int64_t rs_locate(const int64_t *files, const int64_t *numbers, int64_t count, const uint8_t **frames,
                           int64_t *offsets) {
  constexpr int kGroup = 21, kRecords = 128;  // bytes and records of a group
  auto at = [&](int i) { return reinterpret_cast<const int64_t *>(files[i]); };
  const int64_t *first = at(1), *groups = at(2), *residuals = at(3), *sizes = at(4), *mapped = at(5), last = files[0];
  auto offset = [&](int64_t file, int64_t record) {
    if (record == first[file + 1] - first[file]) return uint64_t(sizes[file]);
    const uint8_t *group = reinterpret_cast<const uint8_t *>(groups[file]) + kGroup * (record / kRecords);
    int64_t within = record % kRecords, width = group[20];
    uint64_t residual = 0;
    const uint8_t *from = reinterpret_cast<const uint8_t *>(residuals[file]) + load<int64_t>(group + 8);
    memcpy(&residual, from + within * width, size_t(width));
    return load<uint64_t>(group) + uint64_t(within) * load<uint32_t>(group + 16) + residual;
  };
  offsets[0] = 0;
  for (int64_t i = 0; i < count; i++) {
    int64_t file = std::upper_bound(first, first + last + 1, numbers[i]) - first - 1;
    if (!mapped[file]) return i;
    uint64_t start = offset(file, numbers[i] - first[file]), stop = offset(file, numbers[i] - first[file] + 1);
    if (stop > uint64_t(sizes[file]) || start > stop || stop - start < kHeader + kFooter) return -1 - i;
    frames[i] = reinterpret_cast<const uint8_t *>(mapped[file]) + start;
    offsets[i + 1] = offsets[i] + int64_t(stop - start - kHeader - kFooter);
  }
  return count;
}

// Copies the data of framed records, which are anywhere in memory, to `out`, each where `offsets` says; null copies
// nothing. Stops at the first whose length is not the one between its offsets, or that does not match its CRCs, and
// returns its number.
EXPORTED int64_t rs_gather(const uint8_t *const *frames, const int64_t *offsets, int64_t count, uint8_t *out) {
  constexpr int64_t kAhead = 8;  // frames whose lines are fetched while others are copied
  for (int64_t i = 0; i < count; i++) {
    if (i + kAhead < count) __builtin_prefetch(frames[i + kAhead]);
    const uint8_t *frame = frames[i];
    size_t size = size_t(offsets[i + 1] - offsets[i]);
    if (load<uint64_t>(frame) != size || !is_header(frame)) return i;
    if (masked_crc(frame + kHeader, size) != load<uint32_t>(frame + kHeader + size)) return i;
    if (out) memcpy(out + offsets[i], frame + kHeader, size);
  }
  return count;
}

// Finds the strings under a key of Examples that are written as usual, of which each has as many as `counts` says: the
// address and the size of each, which is not copied. Stops at the first that has others, and returns its number.
EXPORTED int64_t rs_strings(const uint8_t *buffer, const int64_t *starts, const int64_t *stops, int64_t count,
                            const uint8_t *key, int64_t key_size, const int64_t *counts, const uint8_t **strings,
                            int64_t *sizes) {
  for (int64_t i = 0; i < count; i++) {
    Span data{buffer + starts[i], buffer + stops[i]}, entries{data.at, data.at}, entry, name, value, list, string;
    int64_t left = counts[i];
    bool found = false;
    if (data.at < data.end && (!data.field(kFirst, entries) || data.at < data.end)) return i;
    while (entries.at < entries.end) {
      if (!entries.field(kFirst, entry) || !entry.field(kFirst, name) || !entry.field(kSecond, value)) return i;
      if (name.size() != size_t(key_size) || memcmp(name.at, key, size_t(key_size))) continue;
      if (found || entry.at < entry.end || !value.field(kFirst, list) || value.at < value.end) return i;
      found = true;
      for (; list.at < list.end; left--) {
        if (!left || !list.field(kFirst, string)) return i;
        *strings++ = string.at, *sizes++ = int64_t(string.size());
      }
    }
    if (left) return i;
  }
  return count;
}

// Copies strings, which are anywhere in memory, to `out`, each where `places` says.
EXPORTED void rs_copy(const uint8_t *const *strings, const int64_t *sizes, const int64_t *places, int64_t count,
                      uint8_t *out) {
  constexpr int64_t kAhead = 8;  // strings whose lines are fetched while others are copied
  for (int64_t i = 0; i < count; i++) {
    if (i + kAhead < count) __builtin_prefetch(strings[i + kAhead]);
    put(out + places[i], strings[i], size_t(sizes[i]));
  }
}

// The numbers at some places of a permutation of those below `count`, in at most 64 rounds: `permutation.py` says which.
EXPORTED void rs_permute(const int64_t *places, int64_t many, int64_t count, int64_t a, int64_t b, int32_t rounds,
                         uint64_t key, int64_t *numbers) {
  uint64_t keys[64], sizes[2] = {uint64_t(a), uint64_t(b)};
  for (int round = 0; round < rounds; round++)
    keys[round] = splitmix64(splitmix64(key + kGolden) + uint64_t(round) + kGolden);
  for (int64_t i = 0; i < many; i++) {
    uint64_t number = uint64_t(places[i]);
    do {
      uint64_t pair[2] = {number / sizes[1], number % sizes[1]};
      for (int round = 0; round < rounds; round++) {
        uint64_t size = sizes[round % 2], &moved = pair[round % 2];
        moved += (splitmix64(pair[1 - round % 2] ^ keys[round]) >> 32) * size >> 32;
        moved -= size & -uint64_t(moved >= size);  // a branch would be mispredicted half of the time
      }
      number = pair[0] * sizes[1] + pair[1];
    } while (number >= uint64_t(count));
    numbers[i] = int64_t(number);
  }
}

EXPORTED void rs_free(void *decoded) { delete static_cast<Decoded *>(decoded); }
