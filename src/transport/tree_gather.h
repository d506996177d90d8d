// The all-gather of small records in few messages, as a state machine without input and output. It
// also says who is silent while a gather does not end.
//
// Each record goes to all ranks along a tree whose root is the record's own rank. The trees are
// equal but for a turn, so their messages are joined (Bruck et al. 1997, doi:10.1109/71.642949).
// Write with base kRadix how far one rank is after another one, modulo the size. The first digit
// alone, zeros behind it, is a step. Each rank sends once to each rank that lies a step after it.
// With a step of d * kRadix^k go the records of the kRadix^k ranks up to the sender. So each record
// reaches each rank once. A rank sends at most kRadix - 1 messages for each digit of the size.
//
// Why not one tree, up and down: the way there is twice as long. Its root sends and receives
// everything. A rank that says nothing cuts off all ranks behind it.
//
// Why this radix: in jobs of up to nine ranks all send directly. Among 512 ranks a record takes
// three messages, one after the other; with a radix of two it would take nine. This counts where
// ranks look seldom. Each rank of 512 sends 21 messages.
//
// A gather that has not ended after its patience is slow: some rank has not started it, or has
// stopped in it. From then on a rank beats: it sends hints, which say who has been heard of. Beats
// become rarer as the wait becomes longer, and go to few ranks each. So the number of messages that
// a late rank costs each other one grows with the logarithm of the wait.
#ifndef SLUICE_SRC_TRANSPORT_TREE_GATHER_H_
#define SLUICE_SRC_TRANSPORT_TREE_GATHER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/tree_message.h"

namespace sluice {

// One rank's part in one gather after the other. The owner carries its messages, whole, once, and
// from one rank to another in order. Records may have different lengths on the way; the difference
// is an error at the end, on all ranks. Memory: at most the records of two gathers, whatever comes.
// Thread: one.
class TreeGather {
 public:
  static constexpr int kRadix = 8;
  static constexpr int64_t kPatienceNs = 200'000'000;
  // A rank is said to be silent from this age on. Before, only a rank that nobody has heard of is.
  static constexpr uint32_t kSilentMs = 2'000;
  static constexpr size_t kDefaultMaxMessageBytes = 1 << 20;

  // `patience_ns`: when a gather counts as slow, and the least time between two beats.
  // `max_message_bytes`: of messages in and out; longer ones are cut between records. At least
  // MinMessageBytes(size), and the same on all ranks.
  TreeGather(int rank, int size, size_t max_message_bytes = kDefaultMaxMessageBytes,
             int64_t patience_ns = kPatienceNs);
  // 65,536 ranks: 257 KiB.
  static size_t MinMessageBytes(int size);
  TreeGather(const TreeGather&) = delete;
  TreeGather& operator=(const TreeGather&) = delete;

  // Begins a gather; none is under way. Copies `record`, of at most Fabric::kMaxRecordBytes.
  // `now_ns` here and below is on any clock that does not go back.
  void Start(absl::Span<const std::byte> record, int64_t now_ns);
  bool is_under_way() const { return under_way_; }

  // A message that has come, at any time. InvalidArgument names `src` and says what is wrong. The
  // message is then dropped, and nothing else changes. Allocates at most what `message` holds.
  absl::Status Take(int src, absl::Span<const std::byte> message);

  struct Outgoing {
    int dst = -1;
    // False: a hint, which may be dropped. True: Poll's truth is the caller's promise that this
    // message reaches `dst` although this rank calls nothing any more. So a caller whose network
    // does not give that by itself says "not yet" until it does.
    bool is_needed = true;
    std::vector<std::byte> bytes;
  };
  // The next message to send, to a rank that is not `busy`; false: none now. To be asked until
  // false whenever something has come, and again and again while a gather is under way. A rank may
  // be called busy while something is on its way there, so that it holds one message of each
  // sender at most.
  bool Next(int64_t now_ns, absl::FunctionRef<bool(int dst)> busy, Outgoing* out);
  // The same where no rank is ever busy.
  bool Next(int64_t now_ns, int* dst, std::vector<std::byte>* message);

  // True once all records are here, and Next has given all messages that are needed: Poll will
  // return true, or an error.
  bool IsReady() const;

  // As Fabric::PollAllGather, while one is under way, which ends with true or an error. `missing`
  // is never empty with false. After the patience and some messages' time it lists exactly the
  // ranks that have not started, but for those that wait in the gather before. A rank that has
  // started and stopped later joins this list after a silence. The silence lasts kSilentMs at
  // least, and half as long as that of the most silent rank. DataLoss names a rank whose record has
  // another length than this rank's.
  absl::StatusOr<bool> Poll(std::vector<std::byte>* all, std::vector<int>* missing);

 private:
  static constexpr size_t kHintsPerBeat = 4;

  // A rank's state in one gather, as far as known.
  struct Rank {
    uint32_t offset = 0;  // of its record in Gather::bytes
    int16_t bytes = -1;   // of its record; -1: it is not here
    TreeLife::State state = TreeLife::kUnknown;
    bool hinted : 1 = false;    // this rank has sent it a hint, or is about to
    bool answered : 1 = false;  // after it has shown that it has not heard of this rank
    bool is_friend : 1 = false;
  };
  struct Gather {
    std::vector<Rank> ranks;  // none before something has come
    std::vector<std::byte> bytes;
    // The targets of hints: ranks a step before or after this one, and those that hints came from
    // or went to besides.
    std::vector<int> friends;
  };
  // A rank over all gathers.
  struct Life {
    uint32_t beats = 0;
    uint32_t heard_ms = 0;  // when it last gave a sign, 1 at this gather's start; 0: not yet
  };

  void Prepare(Gather* gather) const;
  void AddFriend(Gather* gather, int rank) const;
  // A sign of a rank: one of any gather, one that it is in this gather, or past it.
  void Hear(int rank);
  void HearState(Gather* gather, int rank, TreeLife::State state);
  void TakeHint(int src, const TreeMessage& hint);
  absl::Status Check(int src, const TreeMessage& message, const Gather& gather) const;
  void Store(int src, const TreeMessage& message, Gather* gather);
  void Advance();
  int After(int rank, int distance) const;
  int Before(int rank, int distance) const;

  // How many records the rank one `step` further gets from this one.
  int CountOf(int step) const;
  int WriteRecords(int first, int end, std::vector<std::byte>* bytes) const;
  bool NextRecords(absl::FunctionRef<bool(int)> busy, Outgoing* out);
  bool NextHint(absl::FunctionRef<bool(int)> busy, Outgoing* out);
  void Beat();
  void HintLater(int rank);
  uint32_t ElapsedMs() const;
  bool IsHeard(int rank) const { return lives_[static_cast<size_t>(rank)].heard_ms != 0; }
  uint32_t SilenceMs(int rank) const;
  std::vector<int> Missing() const;
  std::vector<uint8_t> Suspects() const;

  const int rank_;
  const int size_;
  const size_t max_message_bytes_;
  const int64_t patience_ns_;
  std::vector<int> steps_;  // ascending
  bool under_way_ = false;
  uint64_t number_ = 0;  // of the gather under way, or of the last one
  Gather now_;           // the one under way
  Gather next_;          // what has come of the next one
  std::vector<Life> lives_;
  int near_ = 0;           // the records of so many ranks, this one and those before, are here
  std::vector<int> sent_;  // by step: records
  int steps_left_ = 0;     // that have not been sent all of theirs
  int64_t now_ns_ = 0;
  int64_t started_ns_ = 0;
  int64_t beat_ns_ = 0;     // of the next beat
  bool slow_ = false;       // this gather has had a beat
  int quick_beats_ = 0;     // that come soon after each other
  size_t turn_ = 0;         // beats of this gather
  std::vector<int> hints_;  // ranks that this beat still goes to
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_TREE_GATHER_H_
