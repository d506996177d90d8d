// The job of an example, whatever has started the example, and texts that the ranks exchange.
#ifndef SLUICE_EXAMPLES_RANKS_H_
#define SLUICE_EXAMPLES_RANKS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/fabric.h"
#include "sluice/job.h"

namespace examples {

class Ranks {
 public:
  // Collective, as all that follows. Ends the process if no job comes about.
  Ranks();
  // The end of the job on this rank, after all that came from it is gone.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return own_->rank(); }
  int size() const { return own_->size(); }

  // For a session.
  absl::StatusOr<std::unique_ptr<sluice::Fabric>> MakeFabric();

  // Called while ranks wait for each other: sessions go on only while they are polled.
  void SetMeanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // The texts of all ranks, by rank, of any length.
  std::vector<std::string> AllGather(const std::string& mine);
  std::vector<int64_t> AllGather(int64_t mine);
  int64_t Sum(int64_t mine);
  void Barrier() { AllGather(std::string()); }

  // Ends the whole job after an error: ranks that wait for this one would wait for ever.
  void CheckOk(const absl::Status& status);

 private:
  absl::Status Exchange(const std::string& mine, std::vector<std::string>* texts);

  const std::unique_ptr<sluice::Job> job_;
  const std::unique_ptr<sluice::Fabric> own_;
  std::function<void()> meanwhile_;
};

}  // namespace examples

#endif  // SLUICE_EXAMPLES_RANKS_H_
