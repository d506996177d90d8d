// Buckets that have ended in stream order: all of their work has been started, and their slots are
// in use until the device has come to its end. Marks among the device's copies say when it has.
#ifndef SLUICE_SRC_SESSION_ENDING_LINE_H_
#define SLUICE_SRC_SESSION_ENDING_LINE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "engine/engine.h"
#include "session/copy_queue.h"
#include "session/transfer_run.h"

namespace sluice {

class EndingLine {
 public:
  struct Ending {
    Ticket ticket = 0;
    TransferRun* run = nullptr;  // to be told; null where that was done
    size_t index = 0;
  };

  void Reserve(size_t endings) { endings_.reserve(endings); }
  void Add(const Ending& ending) { endings_.push_back(ending); }

  // Asks the device to say when it has come to here, if anything has ended since the last mark and
  // another one may be under way.
  absl::Status Mark(CopyQueue* copies);
  // The device has come to the first mark: tells the engine, and runs, what has ended by then.
  void TakeMark(Engine* engine);

  int marks() const { return static_cast<int>(marks_.size()); }  // under way
  bool all_marked() const { return marked_ == endings_.size(); }

 private:
  // In order; the first `marked_` of them wait for marks, each for those up to it.
  std::vector<Ending> endings_;
  std::vector<size_t> marks_;  // in order: how many endings each is about
  size_t marked_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_ENDING_LINE_H_
