// The safetensors files of a checkpoint in a directory, read and loaded without a session.
#ifndef SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_
#define SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_

#include <cstddef>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "checkpoint/rank_tensors.h"
#include "storage/format/safetensors.h"

namespace sluice::bench {

// One of the files that count, and which of its tensors do: a file may hold more than those for
// which the index names it.
struct PlainFile {
  std::string path;
  absl::optional<std::set<std::string>> tensors = absl::nullopt;  // without an index: all

  bool Counts(const std::string& tensor) const { return !tensors || tensors->contains(tensor); }
};

// The files that count, as docs/checkpoints.md has it: those that an index names; without one
// model.safetensors; without either, all *.safetensors. NotFound if there are none.
absl::StatusOr<std::vector<PlainFile>> CheckpointFiles(const std::string& directory);

// Called with a tensor of a file, and with the whole file's bytes.
using TensorVisit = absl::Status(const SafetensorsTensor& tensor, const std::byte* file);
// Of the tensors that count. Ends early with what `visit` returns; DataLoss, or InvalidArgument,
// says what is wrong with the header.
absl::Status ForEachTensor(const PlainFile& plain, absl::FunctionRef<TensorVisit> visit);

// Takes no rights but to read the files. Nobody may have them mapped. FailedPrecondition if more
// than a hundredth of a file stays; the system tells that of files only that this process may write
// to. What a storage server, a disk or a hypervisor caches stays.
absl::Status DropFromPageCache(const std::vector<std::string>& paths);

// A plain load, to compare with: each rank maps every file, reads its header, and copies its own
// parts of the tensors. Of the library it uses no more than what reads headers.
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
  absl::Status ForEachOfThem(Visit visit) const;
  absl::Status Check(size_t place, const SafetensorsTensor& entry) const;
  void Copy(size_t place, const SafetensorsTensor& entry, const std::byte* file) const;

  const RankTensors* tensors_;
  std::vector<PlainFile> files_;
  std::unordered_map<std::string, size_t> places_;  // of tensors, by name
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_CHECKPOINT_PLAIN_FILES_H_
