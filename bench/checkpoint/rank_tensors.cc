// One allocation for all tensors of a side.
#include "checkpoint/rank_tensors.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "sluice/status.h"
#include "tensor/round.h"
#include "workload/json_input.h"
#include "workload/local_tensor.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAlignment = 4096;

std::byte* DataOf(const TensorView& view) { return static_cast<std::byte*>(view.data); }

}  // namespace

absl::StatusOr<RankTensors> RankTensors::Create(const TransferSpec& spec, bool loads, int rank,
                                                int64_t seed) {
  RankTensors side;
  std::vector<int64_t> offsets;
  for (const TensorTransfer& tensor : spec.tensors) {
    CheckpointTensor made;
    made.name = tensor.name;
    made.shape = tensor.shape;
    made.dtype = loads ? tensor.dst_dtype : tensor.src_dtype;
    made.file_dtype = tensor.src_dtype;
    made.layout = loads ? tensor.dst : tensor.src;
    SLUICE_ASSIGN_OR_RETURN(LocalPart part,
                            Prefixed(absl::StrCat("tensor '", tensor.name, "'"),
                                     LocalPart::Create(made.layout, made.shape, rank)));
    made.view = DenseView(nullptr, part.shape(), made.dtype);
    side.fillers_.emplace_back(made.dtype, FillModulus(spec),
                               ElementHash::Mixed(tensor.name, seed));
    offsets.push_back(side.bytes_);
    side.bytes_ += RoundUp(part.elements() * DTypeBytes(made.dtype), kAlignment);
    side.parts_.push_back(std::move(part));
    side.tensors_.push_back(std::move(made));
  }
  const size_t size = static_cast<size_t>(std::max(side.bytes_, kAlignment));
  side.data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (side.data_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", BytesName(side.bytes_), " of tensors"));
  }
  for (size_t i = 0; i < offsets.size(); ++i) {
    side.tensors_[i].view.data = side.data_.get() + offsets[i];
  }
  return side;
}

void RankTensors::Fill() {
  for (size_t i = 0; i < parts_.size(); ++i) {
    FillPart(parts_[i], fillers_[i], DataOf(tensors_[i].view));
  }
}

void RankTensors::Poison() { std::memset(data_.get(), kPoisonByte, static_cast<size_t>(bytes_)); }

absl::Status RankTensors::Renew() {
  if (bytes_ == 0) return absl::OkStatus();
  if (madvise(data_.get(), static_cast<size_t>(bytes_), MADV_DONTNEED) == 0) {
    return absl::OkStatus();
  }
  return absl::ErrnoToStatus(errno, "madvise of the tensors");
}

int64_t RankTensors::CountWrong(bool sampled) const {
  int64_t wrong = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    wrong += bench::CountWrong(parts_[i], fillers_[i], DataOf(tensors_[i].view), sampled);
  }
  return wrong;
}

}  // namespace sluice::bench
