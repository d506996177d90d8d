// Saves and loads with all ranks as threads. Values say which round, tensor and element they are
// of.
#include "checkpoint/two_rounds.h"

#include <algorithm>
#include <mutex>
#include <set>

#include "absl/strings/str_cat.h"
#include "checkpoint/checkpoint_dir.h"
#include "oracle/make_layout.h"
#include "sluice/session.h"

namespace sluice::checkpoint_test {
namespace {

constexpr int64_t kRows = 16;
constexpr int64_t kColumns = 12;
constexpr int kTensors = 6;
static_assert(kRows * kColumns * 4 == kTensorBytes);

// One rank's columns of all tensors.
struct Local {
  std::vector<std::vector<float>> memory;
  std::vector<CheckpointTensor> tensors;

  explicit Local(int ranks) {
    const Layout layout = oracle::MakeLayout(ranks, "S(1)");
    const int64_t columns = kColumns / ranks;
    memory.resize(kTensors, std::vector<float>(static_cast<size_t>(kRows * columns), -1));
    for (int t = 0; t < kTensors; ++t) {
      CheckpointTensor tensor;
      tensor.name = absl::StrCat("t", t);
      tensor.shape = {kRows, kColumns};
      tensor.layout = layout;
      tensor.view.data = memory[static_cast<size_t>(t)].data();
      tensor.view.shape = {kRows, columns};
      tensor.view.dtype = DType::kF32;
      tensors.push_back(std::move(tensor));
    }
  }

  // Calls `visit` with each element and its value in `round`.
  template <class Visit>
  void VisitAll(int ranks, int rank, uint64_t round, const Visit& visit) {
    const int64_t columns = kColumns / ranks;
    for (int t = 0; t < kTensors; ++t) {
      for (int64_t i = 0; i < kRows * columns; ++i) {
        const int64_t element = i / columns * kColumns + rank * columns + i % columns;
        const int64_t value = (static_cast<int64_t>(round) * kTensors + t) * 1000 + element;
        visit(&memory[static_cast<size_t>(t)][static_cast<size_t>(i)], static_cast<float>(value));
      }
    }
  }
  bool Holds(int ranks, int rank, uint64_t round) {
    bool holds = true;
    VisitAll(ranks, rank, round,
             [&](const float* element, float value) { holds = holds && *element == value; });
    return holds;
  }
};

}  // namespace

absl::Status SaveRound(int ranks, uint64_t round, const std::string& directory,
                       int64_t shard_bytes_max, bool backwards) {
  absl::Status outcome;
  WithSessions(ranks, [&](int rank, Session* session) {
    Local mine(ranks);
    mine.VisitAll(ranks, rank, round, [](float* element, float value) { *element = value; });
    if (backwards) std::reverse(mine.tensors.begin(), mine.tensors.end());
    CheckpointOptions options;
    options.shard_bytes_max = shard_bytes_max;
    const absl::Status status = SaveCheckpoint(session, directory, mine.tensors, options).status();
    if (rank == 0) outcome = status;
  });
  return outcome;
}

int64_t LoadRound(int ranks, const std::string& uri, absl::Status* status,
                  const CheckpointOptions& base) {
  std::mutex mutex;
  std::set<int64_t> found;
  WithSessions(ranks, [&](int rank, Session* session) {
    Local mine(ranks);
    CheckpointOptions options = base;
    options.piece_bytes = 256;
    options.slots = 2;
    options.retry.backoff = absl::Milliseconds(1);
    const absl::Status outcome = LoadCheckpoint(session, uri, mine.tensors, options).status();
    const std::lock_guard<std::mutex> lock(mutex);
    if (rank == 0) *status = outcome;
    found.insert(!outcome.ok()                     ? kNothing
                 : mine.Holds(ranks, rank, kOlder) ? static_cast<int64_t>(kOlder)
                 : mine.Holds(ranks, rank, kNewer) ? static_cast<int64_t>(kNewer)
                                                   : kMixture);
  });
  return found.size() == 1 ? *found.begin() : kMixture;
}

}  // namespace sluice::checkpoint_test
