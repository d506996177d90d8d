// The posts of a watch as they cross: fixed, trivially copyable, in the memory order of the one
// program that all ranks run.
#ifndef SLUICE_SRC_SESSION_PEERS_WATCH_RECORD_H_
#define SLUICE_SRC_SESSION_PEERS_WATCH_RECORD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "session/peers/bucket_report.h"
#include "sluice/fabric.h"
#include "transport/wire_status.h"

namespace sluice {

inline constexpr size_t kMaxAlarmBytes = 1000;
inline constexpr size_t kMaxTensorNameBytes = 200;
inline constexpr size_t kMaxCallBytes = 15;

// Text of at most N bytes; what is longer is cut.
template <size_t N>
struct ShortText {
  int32_t bytes = 0;
  std::array<char, N> data = {};

  ShortText() = default;
  explicit ShortText(absl::string_view text)
      : bytes(static_cast<int32_t>(std::min(text.size(), N))) {
    std::copy_n(text.begin(), bytes, data.begin());
  }
  std::string ToString() const {
    return std::string(data.data(), std::min(static_cast<size_t>(bytes), N));
  }
};

// The beginning of each record. Ranks may run different builds: a record of another format, or of
// another length than its kind has, is passed over.
struct WatchHeader {
  static constexpr uint32_t kFormat = 0x51c30106;
  enum class Kind : uint32_t { kAlarm = 1, kQuestion, kAnswer };

  explicit WatchHeader(Kind of) : kind(of) {}

  uint32_t format = kFormat;
  Kind kind;
};

struct AlarmRecord {
  static constexpr WatchHeader::Kind kKind = WatchHeader::Kind::kAlarm;
  WatchHeader header{kKind};
  int32_t stream = -1;  // that alone has failed; -1: the session has
  WireStatus<kMaxAlarmBytes> status;
};

struct QuestionRecord {
  static constexpr WatchHeader::Kind kKind = WatchHeader::Kind::kQuestion;
  WatchHeader header{kKind};
  uint32_t number = 0;  // comes back in the answer
  BucketQuestion question;
};

struct AnswerRecord {
  static constexpr WatchHeader::Kind kKind = WatchHeader::Kind::kAnswer;
  WatchHeader header{kKind};
  uint32_t number = 0;
  BucketState state = BucketState::kUnknown;
  Stage stage = Stage::kDone;
  bool has_oldest = false;
  int32_t transfer = 0;
  Silence silence;
  int64_t last_run = 0;
  int64_t moves = 0;  // the answering rank's
  Moves heard_of;     // the last that another rank has made, as far as the answering one knows
  Lateness lateness;  // of the answering rank, or the last that it has heard of
  BucketId oldest;
  ShortText<kMaxCallBytes> call;
  ShortText<kMaxTensorNameBytes> tensor;
};

AnswerRecord AnswerOf(uint32_t number, const BucketReport& report, const Silence& silence,
                      const Moves& heard_of, const Lateness& lateness);
// But for `is_late`: its answer's `lateness` says that.
BucketReport ReportOf(const AnswerRecord& record);

template <typename Record>
absl::Span<const std::byte> BytesOf(const Record& record) {
  static_assert(std::is_trivially_copyable_v<Record> && sizeof(Record) <= Fabric::kMaxPostBytes);
  return absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&record), sizeof(record));
}

// True if `post` is a record of this kind, which then is in `record`.
template <typename Record>
bool Decode(absl::Span<const std::byte> post, Record* record) {
  if (post.size() != sizeof(Record)) return false;
  WatchHeader header(Record::kKind);
  std::memcpy(&header, post.data(), sizeof(header));
  if (header.format != WatchHeader::kFormat || header.kind != Record::kKind) return false;
  std::memcpy(static_cast<void*>(record), post.data(), sizeof(Record));
  return true;
}

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_WATCH_RECORD_H_
