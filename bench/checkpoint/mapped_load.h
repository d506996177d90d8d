// A plain load, to compare with: each rank maps every file, reads its header, and copies its own
// parts of the tensors. Nothing of the library runs in it.
#ifndef SLUICE_BENCH_CHECKPOINT_MAPPED_LOAD_H_
#define SLUICE_BENCH_CHECKPOINT_MAPPED_LOAD_H_

#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "checkpoint/plain_files.h"
#include "checkpoint/rank_tensors.h"

namespace sluice::bench {

class MappedLoad {
 public:
  // Of the checkpoint in `directory` into `tensors`, which must outlive this object. Reads headers.
  // Unimplemented if the files' dtypes are not those in memory. NotFound for tensors that the files
  // lack; InvalidArgument for other shapes.
  static absl::StatusOr<MappedLoad> Create(const std::string& directory,
                                           const RankTensors* tensors);

  absl::Status Run() const;

 private:
  explicit MappedLoad(const RankTensors* tensors) : tensors_(tensors) {}
  // Calls `visit(place of the tensor in tensors_, its entry, the file's bytes)`.
  template <typename Visit>
  absl::Status ForEachTensor(const PlainFile& plain, Visit visit) const;
  absl::Status Check(size_t place, const PlainTensor& entry) const;
  void Copy(size_t place, const PlainTensor& entry, const char* file) const;

  const RankTensors* tensors_;
  std::vector<PlainFile> files_;
  std::unordered_map<std::string, size_t> places_;  // of tensors, by name
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_MAPPED_LOAD_H_
