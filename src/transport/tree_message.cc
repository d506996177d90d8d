// The messages of TreeGather: how they are written and read.
#include "transport/tree_message.h"

#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "sluice/fabric.h"

namespace sluice {
namespace {

// Ranks of one job may run different builds, or machines of another order of bytes.
constexpr uint32_t kFormat = 0x51c76e01;

enum Kind : uint32_t { kRecords = 1, kHint = 2 };

struct Header {
  uint32_t format;
  uint32_t kind;
  uint64_t gather;
  int32_t size;
  int32_t first;
  int32_t count;
  int32_t record_bytes;
  uint64_t reserved;
};
static_assert(sizeof(Header) == TreeMessage::kHeaderBytes);
static_assert(Fabric::kMaxRecordBytes <= UINT16_MAX);

template <typename Number>
Number NumberAt(absl::Span<const std::byte> numbers, int index) {
  Number number = 0;
  std::memcpy(&number, numbers.data() + static_cast<size_t>(index) * sizeof(number),
              sizeof(number));
  return number;
}

template <typename Number>
void Append(Number number, std::vector<std::byte>* bytes) {
  const auto* begin = reinterpret_cast<const std::byte*>(&number);
  bytes->insert(bytes->end(), begin, begin + sizeof(number));
}

absl::Status NoMessage(absl::string_view why) { return absl::InvalidArgumentError(why); }

}  // namespace

size_t TreeMessage::RecordBytes(int index) const {
  if (record_bytes != kEachItsOwn) return static_cast<size_t>(record_bytes);
  return NumberAt<uint16_t>(lengths, index);
}

TreeLife TreeMessage::LifeOf(int rank) const {
  const uint32_t word = NumberAt<uint32_t>(body, rank);
  return {static_cast<TreeLife::State>(std::min<uint32_t>(word & 3, TreeLife::kDone)), word >> 2};
}

void WriteTreeHeader(const TreeMessage& message, int size, std::vector<std::byte>* bytes) {
  Header header = {};
  header.format = kFormat;
  header.kind = message.is_hint ? kHint : kRecords;
  header.gather = message.gather;
  header.size = size;
  header.first = message.first;
  header.count = message.count;
  header.record_bytes = message.record_bytes;
  bytes->resize(sizeof(header));
  std::memcpy(bytes->data(), &header, sizeof(header));
}

void AppendTreeLength(size_t record_bytes, std::vector<std::byte>* bytes) {
  Append(static_cast<uint16_t>(record_bytes), bytes);
}

void AppendTreeLife(const TreeLife& life, std::vector<std::byte>* bytes) {
  Append(life.beats << 2 | static_cast<uint32_t>(life.state), bytes);
}

absl::StatusOr<TreeMessage> ReadTreeMessage(absl::Span<const std::byte> bytes, int size) {
  Header header;
  if (bytes.size() < sizeof(header)) {
    return NoMessage(absl::StrCat(bytes.size(), " bytes are too short"));
  }
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.format != kFormat || header.reserved != 0) return NoMessage("its format is unknown");
  if (header.size != size) {
    return NoMessage(absl::StrCat("it is between ", header.size, " ranks, not ", size));
  }
  TreeMessage message;
  message.gather = header.gather;
  message.is_hint = header.kind == kHint;
  message.first = header.first;
  message.count = header.count;
  message.record_bytes = header.record_bytes;
  message.body = bytes.subspan(sizeof(header));
  const auto wrong_length = [&bytes] {
    return NoMessage(absl::StrCat(bytes.size(), " bytes are not what its header says"));
  };
  if (message.is_hint) {
    if (header.count != 0 && header.count != size) return NoMessage("a hint about some ranks");
    const size_t expected = static_cast<size_t>(header.count) * TreeMessage::kLifeBytes;
    if (message.body.size() != expected) return wrong_length();
    return message;
  }
  if (header.kind != kRecords) return NoMessage("its kind is unknown");
  if (header.count < 1 || header.first < 0 || header.first > size - header.count) {
    return NoMessage(
        absl::StrCat(header.count, " records from ", header.first, " ranks before its sender"));
  }
  const bool equal = header.record_bytes != TreeMessage::kEachItsOwn;
  if (equal && (header.record_bytes < 0 ||
                static_cast<size_t>(header.record_bytes) > Fabric::kMaxRecordBytes)) {
    return NoMessage(absl::StrCat("records of ", header.record_bytes, " bytes"));
  }
  if (!equal) {
    const size_t numbers = static_cast<size_t>(header.count) * TreeMessage::kLengthBytes;
    if (message.body.size() < numbers) return wrong_length();
    message.lengths = message.body.first(numbers);
    message.body.remove_prefix(numbers);
  }
  size_t expected = 0;
  for (int i = 0; i < message.count; ++i) {
    const size_t record = message.RecordBytes(i);
    if (record > Fabric::kMaxRecordBytes) {
      return NoMessage(absl::StrCat("a record of ", record, " bytes"));
    }
    expected += record;
  }
  if (message.body.size() != expected) return wrong_length();
  return message;
}

}  // namespace sluice
