// Groups of buckets on their way to a transport that starts operations in groups. Says in which
// order they are fed, and when all of one is there to be started.
//
// Groups follow one another in the order of ids, on all ranks. Groups that are fed and not started
// fit the budget together, so that each of them finds its slots.
#ifndef SLUICE_SRC_SESSION_TRANSFER_GROUP_LINE_H_
#define SLUICE_SRC_SESSION_TRANSFER_GROUP_LINE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "session/transfer/transfer_run.h"

namespace sluice {

class GroupLine {
 public:
  // True if the next bucket of `run`, which can be fed, may be. Its group is then at the end of the
  // line, or finds room there, in `slots` slots. Runs come in order.
  bool MayFeed(const TransferRun& run, int64_t slots);

  // Bucket `index` of `run` has got its slots, or has ended on this rank.
  void Admitted(const TransferRun* run, size_t index);
  void Ended(const TransferRun* run, size_t index);
  // The run ends earlier than planned.
  void Cut(const TransferRun& run);

  // True if all of the first group has been admitted, so that it can be started.
  bool first_is_complete() const {
    return !groups_.empty() && groups_.front().admitted == groups_.front().size();
  }
  bool IsInFirst(const TransferRun* run, size_t index) const {
    return !groups_.empty() && groups_.front().Holds(run, index);
  }
  // The first group's operations of `hop` are about to be started. Internal: those of this hop, or
  // of a later one, have been. Other ranks would match them with other buckets'.
  absl::Status BeginHop(int hop);
  // "group 1 of 2: 3 of 4 buckets admitted, 0 ended"; empty if there is none.
  std::string Describe() const;

 private:
  struct Group {
    const TransferRun* run = nullptr;
    size_t begin = 0;  // buckets of the run's plan
    size_t end = 0;
    size_t admitted = 0;
    size_t ended = 0;
    int hop = -1;  // the last one that was started

    size_t size() const { return end - begin; }
    bool Holds(const TransferRun* of, size_t index) const {
      return of == run && begin <= index && index < end;
    }
  };
  Group& Find(const TransferRun* run, size_t index);
  void DropEnded();

  std::vector<Group> groups_;  // in order
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_GROUP_LINE_H_
