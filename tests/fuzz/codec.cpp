// Fuzzes the native codec: `make fuzz`. The first byte of an input selects what the others are.
//
// Records, each after a byte with its size, are decoded together. What the codec reads must be what protobuf reads, and
// what protobuf writes must be read; encoded again, the columns must give the bytes that protobuf writes. In a file,
// the frames must be those of the plainest loop.

#include "../../pipelines/recordspec/wire/codec.cpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "example.pb.h"

namespace {

namespace pb = recordspec::fuzz;
struct Quiet { Quiet() { google::protobuf::SetLogHandler(nullptr); } } quiet;  // of keys that are no UTF-8

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition);    \
      abort();                                                                    \
    }                                                                             \
  } while (0)

// The values of a list, as bytes that differ when the values do.
struct Values {
  int64_t kind = kNone;
  std::vector<std::string> items;

  bool operator==(const Values &other) const { return kind == other.kind && items == other.items; }
};

template <class T> std::string bytes_of(T value) { return {reinterpret_cast<const char *>(&value), sizeof value}; }

Values values_of(const pb::Feature &feature) {
  Values found;
  found.kind = feature.kind_case();
  for (const auto &value : feature.bytes_list().value()) found.items.push_back(value);
  for (float value : feature.float_list().value()) found.items.push_back(bytes_of(value));
  for (int64_t value : feature.int64_list().value()) found.items.push_back(bytes_of(value));
  return found;
}

using Row = std::map<std::string, Values>;
using Steps = std::map<std::string, std::vector<Values>>;

// What `rs_parts` describes, and where `rs_places` puts the lists of records or steps, and the steps of records.
struct Array {
  struct Places {
    std::vector<int64_t> ends;
    std::vector<uint8_t> valid;

    size_t count() const { return ends.size() - 1; }
    bool has(size_t i) const { return valid[i / 8] >> i % 8 & 1; }
    size_t length(size_t i) const { return size_t(ends[i + 1] - ends[i]); }
  };

  const int64_t *of;
  Places lists, steps;

  Array(void *decoded, int64_t number, const int64_t *numbers, size_t rows) : of(numbers + 11 * number) {
    lists = places(decoded, number, false, size_t(of[4]), of[6], of[8]);
    for (size_t i = 0; of[5] && i < lists.count(); i++) CHECK(lists.has(i) && lists.length(i) == size_t(of[5]));
    if (is_list()) steps = places(decoded, number, true, rows, of[10], of[4]);
    else CHECK(size_t(of[4]) == rows);
  }

  bool is_list() const { return of[0]; }
  std::string key() const { return {reinterpret_cast<const char *>(of[1]), size_t(of[2])}; }
  int64_t kind() const { return of[3]; }
  const uint8_t *flat() const { return reinterpret_cast<const uint8_t *>(of[7]); }
  const int64_t *strings() const { return reinterpret_cast<const int64_t *>(of[9]); }

  Values list(size_t i) const {
    Values found;
    found.kind = kind();
    for (int64_t at = lists.ends[i]; at < lists.ends[i + 1]; at++) {
      if (kind() == kBytes) {
        CHECK(strings()[at] <= strings()[at + 1]);
        found.items.emplace_back(reinterpret_cast<const char *>(flat() + strings()[at]),
                                 size_t(strings()[at + 1] - strings()[at]));
      } else {
        found.items.push_back(kind() == kFloat ? bytes_of(load<float>(flat() + 4 * at))
                                               : bytes_of(load<int64_t>(flat() + 8 * at)));
      }
    }
    return found;
  }

 private:
  // `present` of `count` have any items, of which there are `all`.
  static Places places(void *decoded, int64_t number, bool steps, size_t count, int64_t present, int64_t all) {
    Places found{std::vector<int64_t>(count + 1), std::vector<uint8_t>((count + 7) / 8)};
    rs_places(decoded, number, steps, found.ends.data(), found.valid.data());
    CHECK(found.ends[0] == 0 && found.ends[count] == all);
    for (size_t i = 0; i < count; i++) {
      CHECK(found.ends[i] <= found.ends[i + 1] && (found.has(i) || !found.length(i)));
      present -= found.has(i);
    }
    CHECK(!present);
    return found;
  }
};

struct Table {
  std::vector<Row> features;
  std::vector<Steps> lists;

  Table(const std::vector<Array> &arrays, size_t rows) : features(rows), lists(rows) {
    for (const Array &array : arrays) {
      if (!array.is_list()) {
        for (size_t row = 0; row < rows; row++)
          if (array.lists.has(row)) CHECK(features[row].emplace(array.key(), array.list(row)).second);
        continue;
      }
      for (size_t row = 0; row < rows; row++) {
        if (!array.steps.has(row)) {
          CHECK(!lists[row].count(array.key()));
          continue;
        }
        std::vector<Values> none(array.steps.length(row), Values{-1, {}});
        auto &steps = lists[row].emplace(array.key(), none).first->second;
        CHECK(steps.size() == array.steps.length(row));
        for (size_t step = 0; step < steps.size(); step++) {
          size_t at = size_t(array.steps.ends[row]) + step;
          if (!array.lists.has(at)) continue;
          CHECK(steps[step].kind == -1);
          steps[step] = array.list(at);
        }
      }
    }
  }
};

template <class Map> bool has_usual_entries(const Map &entries) {
  std::set<std::string> keys;
  for (const auto &entry : entries)
    if (entry.key().empty() || !entry.has_value() || !keys.insert(entry.key()).second) return false;
  return true;
}

// The record as protobuf reads it; whether it does, and whether it is what protobuf writes.
bool parse(std::string_view data, bool sequence, pb::SequenceExample &record, bool &usual) {
  pb::Example example;
  google::protobuf::Message &message =
      sequence ? static_cast<google::protobuf::Message &>(record) : static_cast<google::protobuf::Message &>(example);
  if (!message.ParseFromArray(data.data(), int(data.size()))) return false;
  usual = message.SerializeAsString() == data;
  size_t size = message.ByteSizeLong();
  message.DiscardUnknownFields();
  usual = usual && message.ByteSizeLong() == size;
  if (!sequence && example.has_features()) *record.mutable_context() = example.features();
  usual = usual && has_usual_entries(record.context().feature()) &&
          has_usual_entries(record.feature_lists().feature_list());
  return true;
}

Row row_of(const pb::SequenceExample &record) {
  Row row;
  for (const auto &entry : record.context().feature()) row[entry.key()] = values_of(entry.value());
  return row;
}

Steps steps_of(const pb::SequenceExample &record) {
  Steps found;
  for (const auto &entry : record.feature_lists().feature_list()) {
    found[entry.key()];
    for (const auto &step : entry.value().feature()) found[entry.key()].push_back(values_of(step));
  }
  return found;
}

// The arrays of a column for `rs_measure`.
struct Given {
  std::string key;
  std::vector<int64_t> ends, steps;
  std::vector<uint8_t> present;
};

// A record as the codec must write it: keys in order, both maps there.
std::string expected(const Row &row, const Steps *steps) {
  auto set = [](pb::Feature &feature, const Values &values) {
    if (values.kind == kBytes) feature.mutable_bytes_list();
    if (values.kind == kFloat) feature.mutable_float_list();
    if (values.kind == kInt) feature.mutable_int64_list();
    for (const auto &item : values.items) {
      const auto *at = reinterpret_cast<const uint8_t *>(item.data());
      if (values.kind == kBytes) feature.mutable_bytes_list()->add_value(item);
      if (values.kind == kFloat) feature.mutable_float_list()->add_value(load<float>(at));
      if (values.kind == kInt) feature.mutable_int64_list()->add_value(load<int64_t>(at));
    }
  };
  pb::Example example;
  pb::SequenceExample record;
  pb::Features *features = steps ? record.mutable_context() : example.mutable_features();
  for (const auto &[key, values] : row) {
    auto *entry = features->add_feature();
    entry->set_key(key);
    set(*entry->mutable_value(), values);
  }
  if (!steps) return example.SerializeAsString();
  record.mutable_feature_lists();
  for (const auto &[key, lists] : *steps) {
    auto *entry = record.mutable_feature_lists()->add_feature_list();
    entry->set_key(key);
    entry->mutable_value();
    for (const auto &values : lists) set(*entry->mutable_value()->add_feature(), values);
  }
  return record.SerializeAsString();
}

// Encodes what was decoded, if every key has lists of one kind and every record all feature lists.
void encode_again(const std::vector<Array> &arrays, const Table &table, size_t rows, bool sequence, bool framed) {
  std::map<std::pair<bool, std::string>, std::vector<Array>> by_key;
  for (const Array &array : arrays) by_key[{array.is_list(), array.key()}].push_back(array);
  std::vector<std::unique_ptr<Given>> held;
  std::vector<int64_t> numbers;
  int64_t features = 0, lists = 0;
  for (const auto &[place, some] : by_key) {
    if (some.size() != 1 || some[0].kind() == kNone) return;
    const Array &array = some[0];
    held.push_back(std::make_unique<Given>());
    Given &given = *held.back();
    given.key = place.second;
    given.ends = array.lists.ends;
    for (size_t i = 0; i < array.lists.count(); i++) given.present.push_back(array.lists.has(i));
    bool all = size_t(array.of[6]) == array.lists.count();
    if (place.first) {
      if (!all || size_t(array.of[10]) != rows) return;
      given.steps = array.steps.ends;
    }
    (place.first ? lists : features)++;
    // one width, where all have it, is the shorter way to say it
    int64_t width = given.ends.size() > 1 ? given.ends[1] : 0;
    for (size_t i = 1; i < given.ends.size(); i++)
      if (given.ends[i] - given.ends[i - 1] != width) width = -1;
    numbers.insert(numbers.end(),
                   {int64_t(given.key.data()), int64_t(given.key.size()), array.kind(), width,
                    int64_t(given.ends.data()), int64_t(array.flat()), int64_t(array.strings()), 0,
                    all ? 0 : int64_t(given.present.data()),
                    place.first ? int64_t(given.steps.data()) : 0});
  }
  std::vector<int64_t> offsets(rows + 1);
  int64_t large = 0;
  void *measured = rs_measure(numbers.data(), features, sequence ? lists : -1, int64_t(rows),
                              (int64_t(1) << 31) - 1, framed, offsets.data(), &large);
  CHECK(measured && large == -1);
  std::vector<uint8_t> buffer(size_t(offsets[rows]) + 16);
  CHECK(rs_fill(measured, buffer.data(), offsets.data()));
  for (size_t row = 0; row < rows; row++) {
    const uint8_t *from = buffer.data() + offsets[row], *to = buffer.data() + offsets[row + 1];
    if (framed) {
      CHECK(load<uint64_t>(from) == uint64_t(to - from) - 16 && is_header(from));
      CHECK(load<uint32_t>(to - 4) == masked_crc(from + 12, size_t(to - from) - 16));
      from += 12, to -= 4;
    }
    std::string found(from, to);
    CHECK(found == expected(table.features[row], sequence ? &table.lists[row] : nullptr));
  }
}

// The values that `rs_values` finds are those of the arrays, where every record has such a list.
void copy_values(void *decoded, const std::vector<Array> &arrays, size_t rows) {
  for (const Array &array : arrays) {
    if (array.is_list() || !array.kind()) continue;
    for (int64_t width : {int64_t(-1), std::max<int64_t>(array.of[5], 1)}) {
      std::string key = array.key();
      std::vector<uint8_t> packed(12);
      auto put = [&](size_t at, int64_t number) {
        auto value = uint32_t(number);
        memcpy(packed.data() + at, &value, 4);
      };
      put(0, int64_t(key.size())), put(4, array.kind()), put(8, width);
      packed.insert(packed.end(), key.begin(), key.end());
      auto count = size_t(array.of[8]);
      std::vector<int64_t> out(rows + count + 3);
      auto *address = reinterpret_cast<uint8_t *>(out.data());
      bool all = array.of[6] == int64_t(rows), has = all && (width < 0 || width == array.of[5]);
      CHECK(rs_values(decoded, packed.data(), int64_t(packed.size()), &address) == int32_t(has));
      if (!has) continue;
      size_t bytes = array.kind() == kFloat ? 4 * count : 8 * count;
      if (width < 0) {
        CHECK(out[0] == array.of[7] && size_t(out[2]) == count && (array.kind() != kBytes || out[1] == array.of[9]));
        for (size_t row = 0; row < rows; row++) CHECK(size_t(out[3 + row]) == array.lists.length(row));
      } else if (array.kind() == kBytes) {
        CHECK(out[0] == array.of[7] && !memcmp(&out[1], array.strings(), bytes + 8));
      } else {
        CHECK(!memcmp(out.data(), array.flat(), bytes));
      }
    }
  }
}

// Of some keys only: the same values of these, and the same records that are not as usual.
void decode_some(const uint8_t *data, const std::vector<int64_t> &starts, const std::vector<int64_t> &stops,
                 bool sequence, const std::vector<uint8_t> &odd, Table table) {
  std::set<std::string> keys;
  for (const auto &row : table.features)
    for (const auto &[key, values] : row) keys.insert(key);
  for (const auto &row : table.lists)
    for (const auto &[key, values] : row) keys.insert(key);
  std::vector<uint8_t> wanted;
  bool keep = false;
  for (const auto &key : keys) {
    if ((keep = !keep)) {
      auto size = uint32_t(key.size());
      const auto *bytes = reinterpret_cast<const uint8_t *>(&size);
      wanted.insert(wanted.end(), bytes, bytes + 4);
      wanted.insert(wanted.end(), key.begin(), key.end());
      continue;
    }
    for (auto &row : table.features) row.erase(key);
    for (auto &row : table.lists) row.erase(key);
  }
  size_t rows = starts.size();
  std::vector<uint8_t> other(rows);
  uint8_t none = 0;
  auto *decoded = rs_decode(data, starts.data(), stops.data(), int64_t(rows), sequence,
                            wanted.empty() ? &none : wanted.data(), int64_t(wanted.size()), other.data());
  CHECK(decoded && other == odd);
  int64_t count = 0;
  const int64_t *numbers = rs_parts(decoded, &count);
  std::vector<Array> arrays;
  for (int64_t i = 0; i < count; i++) arrays.emplace_back(decoded, i, numbers, rows);
  Table some(arrays, rows);
  CHECK(some.features == table.features && some.lists == table.lists);
  rs_free(decoded);
}

void decode_records(const uint8_t *data, size_t size, bool sequence, bool framed) {
  std::vector<int64_t> starts, stops;
  for (size_t at = 0; at < size;) {
    size_t length = std::min<size_t>(data[at], size - at - 1);
    if (data[at] == 255) length = size - at - 1;  // the last may be long
    starts.push_back(int64_t(at + 1)), stops.push_back(int64_t(at + 1 + length));
    at += 1 + length;
  }
  size_t rows = starts.size();
  std::vector<uint8_t> odd(rows);
  auto *decoded = rs_decode(data, starts.data(), stops.data(), int64_t(rows), sequence, nullptr, 0, odd.data());
  CHECK(decoded);
  int64_t count = 0;
  const int64_t *numbers = rs_parts(decoded, &count);
  std::vector<Array> arrays;
  for (int64_t i = 0; i < count; i++) arrays.emplace_back(decoded, i, numbers, rows);
  Table table(arrays, rows);
  for (size_t row = 0; row < rows; row++) {
    std::string_view one(reinterpret_cast<const char *>(data + starts[row]), size_t(stops[row] - starts[row]));
    pb::SequenceExample record;
    bool usual = false, parsed = parse(one, sequence, record, usual);
    CHECK(!usual || !odd[row]);
    if (odd[row]) {
      CHECK(table.features[row].empty() && table.lists[row].empty());
      continue;
    }
    CHECK(parsed && table.features[row] == row_of(record) && table.lists[row] == steps_of(record));
  }
  copy_values(decoded, arrays, rows);
  encode_again(arrays, table, rows, sequence, framed);
  decode_some(data, starts, stops, sequence, odd, table);
  rs_free(decoded);
}

// Strings that are hashed together have the hashes that each has alone.
void hash_keys(const uint8_t *data, const std::vector<int64_t> &starts, const std::vector<int64_t> &stops) {
  std::vector<uint64_t> together(2 * starts.size()), alone(together.size());
  rs_keys(data, starts.data(), stops.data(), int64_t(starts.size()), together.data());
  for (size_t i = 0; i < starts.size(); i++)
    blake_hashes<1>(data, starts.data() + i, stops.data() + i, 1, alone.data() + 2 * i);
  CHECK(together == alone);
}

void read_frames(const uint8_t *data, size_t size) {
  auto crc_at = [&](size_t at, size_t length) {
    uint32_t crc = ~crc_by_table(~0u, data + at, length);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
  };
  std::vector<int64_t> places(size / 16 + 2), starts, stops, expected{0};
  for (size_t at = 0; size - at >= 16;) {
    auto length = load<uint64_t>(data + at);
    if (load<uint32_t>(data + at + 8) != crc_at(at, 8) || length > size - at - 16) break;
    starts.push_back(int64_t(at + 12)), stops.push_back(int64_t(at + 12 + length));
    at += 16 + length;
    expected.push_back(int64_t(at));
  }
  places.resize(size_t(rs_frames(data, int64_t(size), 0, places.data(), int64_t(places.size()) - 1)) + 1);
  CHECK(places == expected);
  starts.push_back(0), stops.push_back(int64_t(size));
  std::vector<uint32_t> crcs(starts.size());
  rs_masked_crcs(data, starts.data(), stops.data(), int64_t(starts.size()), crcs.data());
  for (size_t i = 0; i < starts.size(); i++)
    CHECK(crcs[i] == crc_at(size_t(starts[i]), size_t(stops[i] - starts[i])));
  hash_keys(data, starts, stops);
  std::vector<int64_t> found(size), headers;
  for (size_t at = 0; at + 12 <= size; at++)
    if (load<uint64_t>(data + at) < 1000 && load<uint32_t>(data + at + 8) == crc_at(at, 8))
      headers.push_back(int64_t(at));
  found.resize(size_t(rs_headers(data, int64_t(size), 0, 999, found.data(), int64_t(size))));
  CHECK(found == headers);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!size) return 0;
  // in memory of its own size, so that a byte read beyond it is seen
  std::vector<uint8_t> copy(data + 1, data + size);
  if (data[0] % 8 == 7) read_frames(copy.data(), copy.size());
  else decode_records(copy.data(), copy.size(), data[0] & 1, data[0] & 2);
  return 0;
}
