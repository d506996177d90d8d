// Makes the examples' processes the ranks of one job, with MPI or without.
//
// Under mpirun they meet over MPI, if it is built in. Otherwise they are a world (sluice/world.h),
// or one process alone.
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

namespace examples {

class Ranks {
 public:
  // Collective, as all that follows. Ends the process if no job comes about.
  static std::unique_ptr<Ranks> Start(int* argc, char*** argv);
  // The end of the job on this rank, after all that came from it is gone.
  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return own_->rank(); }
  int size() const { return own_->size(); }

  // For a session.
  virtual absl::StatusOr<std::unique_ptr<sluice::Fabric>> MakeFabric() = 0;

  // Called while ranks wait for each other: sessions go on only while they are polled.
  void SetMeanwhile(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

  // The texts of all ranks, by rank, of any length.
  std::vector<std::string> AllGather(const std::string& mine);
  std::vector<int64_t> AllGather(int64_t mine);
  int64_t Sum(int64_t mine);
  void Barrier() { AllGather(std::string()); }

  // Ends the whole job after an error: ranks that wait for this one would wait for ever.
  void CheckOk(const absl::Status& status);

 protected:
  Ranks() = default;
  // Makes a fabric for the ranks' texts, first of all.
  void MakeOwn();
  void DropOwn() { own_ = nullptr; }
  absl::Status Exchange(const std::string& mine, std::vector<std::string>* texts);
  [[noreturn]] virtual void Abort() = 0;

 private:
  std::unique_ptr<sluice::Fabric> own_;
  std::function<void()> meanwhile_;
};

}  // namespace examples

#endif  // SLUICE_EXAMPLES_RANKS_H_
