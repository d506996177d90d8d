// Ranks that exchange over a fabric of their own, by its all-gathers alone.
#ifndef SLUICE_BENCH_JOB_FABRIC_RANKS_H_
#define SLUICE_BENCH_JOB_FABRIC_RANKS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "job/ranks.h"
#include "sluice/fabric.h"

namespace sluice::bench {

class FabricRanks final : public Ranks {
 public:
  // Collective over `fabric`.
  static absl::StatusOr<std::unique_ptr<Ranks>> Create(std::unique_ptr<Fabric> fabric,
                                                       absl::Duration timeout);

  absl::Status Barrier(absl::Duration timeout, Progress progress) override;
  absl::StatusOr<std::vector<std::string>> AllGather(const std::string& record,
                                                     absl::Duration timeout,
                                                     Progress progress) override;
  absl::StatusOr<std::vector<std::string>> GatherToFirst(const std::string& record,
                                                         absl::Duration timeout,
                                                         Progress progress) override;
  void Part(absl::Duration timeout) override;

 private:
  explicit FabricRanks(std::unique_ptr<Fabric> fabric);
  // One all-gather of the fabric: pieces of equal length, which come to lie in all_.
  absl::Status Gather(const char* piece, size_t bytes, absl::Duration timeout, Progress progress);
  // `keeps`: whether the records of others are wanted on this rank.
  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& record, bool keeps,
                                                    absl::Duration timeout, Progress progress);

  const std::unique_ptr<Fabric> fabric_;
  std::vector<std::byte> all_;
  std::vector<int> missing_;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_JOB_FABRIC_RANKS_H_
