// The tensors that are synced, and where they lie on so many trainers and so many servers.
//
// Trainers are the fabric's first ranks, and servers follow. Servers form whole replicas as far as
// they go. Those that are left over form one replica more, cut by as many ranks as they are. So
// every server has its part, however many have come.
#ifndef SLUICE_BENCH_SYNC_WEIGHTS_H_
#define SLUICE_BENCH_SYNC_WEIGHTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "sluice/layout.h"
#include "sync/options.h"
#include "workload/model_file.h"
#include "workload/system_file.h"

namespace sluice::bench {

// One layout for each tensor.
using Layouts = std::vector<Layout>;

class SyncWeights {
 public:
  // Reads the files that the flags name. InvalidArgument and NotFound name the flag or the file.
  static absl::StatusOr<SyncWeights> Make(const SyncOptions& options);

  const std::vector<ModelTensor>& tensors() const { return model_.tensors; }
  // Of all tensors, each element once.
  int64_t bytes() const { return bytes_; }
  // Differs where tensors, layouts or the number of versions differ. Not negative.
  int64_t hash() const { return hash_; }

  // Servers of one replica.
  int64_t replica() const;
  // InvalidArgument: the system does not go with so many trainers.
  absl::StatusOr<Layouts> OfTrainers(int trainers) const;
  // One or two meshes for each tensor: of the whole replicas, and of those that are left over. The
  // first dimension of each mesh replicates.
  absl::StatusOr<std::vector<Layouts>> OfServers(int trainers, int servers) const;

 private:
  SyncWeights(Model model, System system) : model_(std::move(model)), system_(std::move(system)) {}

  Model model_;
  System system_;
  bool cuts_by_trainers_ = false;  // no system: dimension 0 over all trainers
  int64_t bytes_ = 0;
  int64_t hash_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_WEIGHTS_H_
