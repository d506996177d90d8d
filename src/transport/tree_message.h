// The messages of TreeGather: how they are written and read.
#ifndef SLUICE_SRC_TRANSPORT_TREE_MESSAGE_H_
#define SLUICE_SRC_TRANSPORT_TREE_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace sluice {

// A rank's state, as ranks tell each other.
struct TreeLife {
  enum State : uint8_t {
    kUnknown,
    kStarted,  // this gather
    kDone,     // needs no rank's records any more
  };
  static constexpr uint32_t kMaxBeats = (1u << 30) - 1;
  State state = kUnknown;
  uint32_t beats = 0;  // over all gathers
};

// Records, or a hint.
struct TreeMessage {
  static constexpr size_t kHeaderBytes = 40;
  static constexpr size_t kLengthBytes = 2;  // of a record's length
  static constexpr size_t kLifeBytes = 4;    // of what a hint says of a rank
  static constexpr int kEachItsOwn = -1;

  uint64_t gather = 0;
  bool is_hint = false;
  // Records: the first one is that of the rank so far before the sender. `count` of them follow,
  // each of the rank before. Hints: `count` is all ranks or none.
  int first = 0;
  int count = 0;
  int record_bytes = 0;  // of each record, or kEachItsOwn
  // The parts of a read message behind its header, in the message's memory.
  absl::Span<const std::byte> lengths = {};  // of records, if each has its own
  absl::Span<const std::byte> body = {};

  size_t RecordBytes(int index) const;
  // A hint's word on one rank; the hint is about all ranks.
  TreeLife LifeOf(int rank) const;
};

// Writes the header of a message between `size` ranks to an empty `bytes`.
void WriteTreeHeader(const TreeMessage& message, int size, std::vector<std::byte>* bytes);
void AppendTreeLength(size_t record_bytes, std::vector<std::byte>* bytes);
void AppendTreeLife(const TreeLife& life, std::vector<std::byte>* bytes);

// InvalidArgument says why `bytes` is no message between `size` ranks. The caller checks
// which records may come from where.
absl::StatusOr<TreeMessage> ReadTreeMessage(absl::Span<const std::byte> bytes, int size);

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TREE_MESSAGE_H_
