// A comparison between all ranks: whether they make the same call with the same input.
//
// Started and polled, like everything that waits for other ranks.
#ifndef SLUICE_SRC_SESSION_PEERS_AGREEMENT_H_
#define SLUICE_SRC_SESSION_PEERS_AGREEMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "plan/bucket.h"
#include "sluice/fabric.h"
#include "tensor/error_text.h"
#include "transport/deadline.h"

namespace sluice {

// One rank's contribution to a comparison.
struct Proposal {
  // Which call this is, for messages: "Compile". At most 15 characters.
  std::string call;
  // Named values that must be equal on all ranks, in the same order on all ranks; at most
  // kMaxValues. Names must outlive the agreement. Hashes are not `shown` in messages.
  struct Value {
    absl::string_view name;
    int64_t value = 0;
    bool shown = true;
  };
  static constexpr size_t kMaxValues = 10;
  absl::InlinedVector<Value, kMaxValues> values;
  // Whether this rank's own input is good.
  absl::Status status;
  // Carried along, not compared: the largest of all ranks' buckets comes out.
  BucketId bucket;
  // Carried along, not compared: all ranks' come out. At most kMaxPayloadBytes.
  std::string payload;
  // Says, for messages, the act that late ranks have not done; empty: "did not call Compile".
  std::string lacking;

  static constexpr size_t kMaxPayloadBytes = 1100;
};

class Agreement {
 public:
  // `fabric` must outlive this object.
  explicit Agreement(Fabric* fabric) : fabric_(fabric) {}

  // Begins. Collective; not before the one before has ended. `timeout` counts from here.
  absl::Status Start(Proposal proposal, absl::Duration timeout);

  // How many have been started, this one included: a number that all ranks know it by.
  int64_t number() const { return number_; }

  // True once it has ended; then outcome() is
  // * OK: all ranks made the same call with the same values and good input;
  // * the ranks' own error, where a rank's input is bad: names these ranks;
  // * FailedPrecondition: ranks differ; names the value and the ranks;
  // * DeadlineExceeded: names the ranks that did not call;
  // * the fabric's error.
  // After the last two the ranks may have come to different outcomes: out_of_step() is true.
  bool Poll();
  // The ranks that have not come to it, as far as the fabric knows; none once it has ended.
  const std::vector<int>& FindMissing();
  // "rank 3 to call Compile", as a line of LongWait; empty: nobody is missing.
  std::string Awaits();
  // Ends it with DeadlineExceeded if it cannot end otherwise. `after` has passed; `note` says more.
  void GiveUp(absl::Duration after, const ErrorText& note = ErrorText());
  const absl::Status& outcome() const { return outcome_; }
  bool out_of_step() const { return out_of_step_; }
  // After OK: the largest Proposal::bucket.
  const BucketId& largest_bucket() const { return largest_bucket_; }
  // After OK, until the next Start: what `rank` brought along.
  std::string payload(int rank) const;

 private:
  // True if it ends by what has come.
  bool Look(std::vector<int>* missing);
  absl::Status Compare(absl::Span<const std::byte> all);
  absl::Status Differences(absl::Span<const std::byte> all) const;

  Fabric* fabric_;
  Proposal proposal_;
  Deadline deadline_{absl::ZeroDuration()};
  int64_t number_ = 0;
  bool ended_ = true;
  bool out_of_step_ = false;
  absl::Status outcome_;
  BucketId largest_bucket_;
  std::vector<std::byte> all_;
  std::vector<int> missing_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_PEERS_AGREEMENT_H_
