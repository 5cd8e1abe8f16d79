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

// What `rs_parts` describes, as records.
struct Part {
  const int64_t *of;

  bool is_list() const { return of[0]; }
  std::string key() const { return {reinterpret_cast<const char *>(of[1]), size_t(of[2])}; }
  int64_t kind() const { return of[3]; }
  const int64_t *rows() const { return reinterpret_cast<const int64_t *>(of[4]); }
  int64_t count() const { return of[5]; }
  const int64_t *lengths() const { return reinterpret_cast<const int64_t *>(of[6]); }
  const uint8_t *flat() const { return reinterpret_cast<const uint8_t *>(of[7]); }
  int64_t flat_size() const { return of[8]; }
  const int64_t *places() const { return reinterpret_cast<const int64_t *>(of[9]); }

  std::vector<Values> lists() const {
    std::vector<Values> found;
    int64_t at = 0;
    for (int64_t i = 0; i < count(); i++) {
      Values list;
      list.kind = kind();
      for (int64_t end = at + lengths()[i]; at < end; at++) {
        if (kind() == kBytes) {
          CHECK(places()[at] <= places()[at + 1] && places()[at + 1] <= flat_size());
          list.items.emplace_back(reinterpret_cast<const char *>(flat() + places()[at]),
                                  size_t(places()[at + 1] - places()[at]));
        } else {
          CHECK(at < flat_size());
          list.items.push_back(kind() == kFloat ? bytes_of(load<float>(flat() + 4 * at))
                                                : bytes_of(load<int64_t>(flat() + 8 * at)));
        }
      }
      found.push_back(list);
    }
    CHECK(kind() == kBytes || at == flat_size());
    return found;
  }
};

struct Table {
  std::vector<Row> features;
  std::vector<Steps> lists;

  Table(const std::vector<Part> &parts, size_t rows) : features(rows), lists(rows) {
    std::vector<std::pair<size_t, size_t>> owners;  // the row of each step, and its place there
    for (const Part &part : parts) {
      if (part.kind() == kKinds) {
        owners.clear();
        for (int64_t i = 0; i < part.count(); i++) {
          auto row = size_t(part.rows()[i]);
          CHECK(row < rows && !lists[row].count(part.key()));
          lists[row][part.key()].resize(size_t(part.lengths()[i]), Values{-1, {}});
          for (size_t step = 0; step < size_t(part.lengths()[i]); step++) owners.emplace_back(row, step);
        }
        continue;
      }
      std::vector<Values> given = part.lists();
      for (size_t i = 0; i < given.size(); i++) {
        auto at = size_t(part.rows()[i]);
        CHECK(i == 0 || part.rows()[i - 1] < part.rows()[i]);
        if (!part.is_list()) {
          CHECK(at < rows && features[at].emplace(part.key(), given[i]).second);
          continue;
        }
        CHECK(at < owners.size());
        Values &step = lists[owners[at].first][part.key()][owners[at].second];
        CHECK(step.kind == -1);
        step = given[i];
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
  std::vector<int64_t> ends{0}, steps{0}, places;
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
void encode_again(const std::vector<Part> &parts, const Table &table, size_t rows, bool sequence, bool framed) {
  std::map<std::pair<bool, std::string>, std::vector<Part>> by_key;
  for (const Part &part : parts) by_key[{part.is_list(), part.key()}].push_back(part);
  std::vector<std::unique_ptr<Given>> held;
  std::vector<int64_t> numbers;
  int64_t features = 0, lists = 0;
  for (const auto &[place, some] : by_key) {
    if (some.size() != (place.first ? 2 : 1) || some.back().kind() == kNone) return;
    const Part &part = some.back();
    held.push_back(std::make_unique<Given>());
    Given &given = *held.back();
    given.key = place.second;
    given.present.assign(rows, 0);
    if (place.first) {
      if (size_t(some[0].count()) != rows) return;
      for (int64_t i = 0; i < some[0].count(); i++) given.steps.push_back(given.steps.back() + some[0].lengths()[i]);
      if (part.count() != given.steps.back()) return;
      for (int64_t i = 0; i < part.count(); i++) given.ends.push_back(given.ends.back() + part.lengths()[i]);
    } else {
      int64_t next = 0;
      for (size_t row = 0; row < rows; row++) {
        bool here = next < part.count() && part.rows()[next] == int64_t(row);
        given.present[row] = here;
        given.ends.push_back(given.ends.back() + (here ? part.lengths()[next++] : 0));
      }
    }
    (place.first ? lists : features)++;
    // one width, where all have it, is the shorter way to say it
    int64_t width = given.ends.size() > 1 ? given.ends[1] : 0;
    for (size_t i = 1; i < given.ends.size(); i++)
      if (given.ends[i] - given.ends[i - 1] != width) width = -1;
    bool all = part.count() == int64_t(rows) && !place.first;
    numbers.insert(numbers.end(),
                   {int64_t(given.key.data()), int64_t(given.key.size()), part.kind(), width,
                    int64_t(given.ends.data()), int64_t(part.flat()), int64_t(part.places()), 0,
                    all || place.first ? 0 : int64_t(given.present.data()),
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
  void *decoded = rs_decode(data, starts.data(), stops.data(), int64_t(rows), sequence, odd.data());
  CHECK(decoded);
  int64_t count = 0;
  const int64_t *numbers = rs_parts(decoded, &count);
  std::vector<Part> parts;
  for (int64_t i = 0; i < count; i++) parts.push_back({numbers + 10 * i});
  Table table(parts, rows);
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
  encode_again(parts, table, rows, sequence, framed);
  rs_free(decoded);
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
