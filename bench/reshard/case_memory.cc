// Filling, poisoning and checking all tensors of a case.
#include "reshard/case_memory.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "workload/fill.h"
#include "workload/local_tensor.h"
#include "workload/numbers.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAlignment = 4096;

// Far enough apart that tensors of everyday sizes do not hold each other's values in place.
constexpr int64_t kSeedStep = 1000003;

int64_t RoundUp(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

std::unique_ptr<const Values> MakeValues(const TensorTransfer& tensor, bool is_source, int rank,
                                         uint32_t modulus, int64_t seed) {
  if (is_source) {
    return std::make_unique<Filler>(MakeSourceFiller(tensor, rank, modulus, seed));
  }
  if (HasPartial(tensor.src)) return std::make_unique<ReducedValues>(tensor, modulus, seed);
  return std::make_unique<Filler>(tensor.dst_dtype, modulus, seed);
}

std::byte* DataOf(const TensorView& view) { return static_cast<std::byte*>(view.data); }

}  // namespace

absl::StatusOr<CaseMemory::Side> CaseMemory::MakeSide(const TransferSpec& spec, bool is_source,
                                                      int rank, int64_t seed, bool same_fill,
                                                      bool late) {
  Side side;
  std::vector<int64_t> offsets;
  const uint32_t modulus = FillModulus(spec);
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorTransfer& tensor = spec.tensors[i];
    const DType dtype = is_source ? tensor.src_dtype : tensor.dst_dtype;
    auto part = LocalPart::Create(is_source ? tensor.src : tensor.dst, tensor.shape, rank);
    if (!part.ok()) return part.status();
    const int64_t step = same_fill ? 0 : static_cast<int64_t>(i) * kSeedStep;
    side.values.push_back(MakeValues(tensor, is_source, rank, modulus, seed + step));
    offsets.push_back(side.bytes);
    side.bytes += RoundUp(part->elements() * DTypeBytes(dtype));
    side.parts.push_back(*std::move(part));
  }
  if (late) {
    for (size_t i = 0; i < side.parts.size(); ++i) {
      side.views.push_back(DenseView(nullptr, side.parts[i].shape(), side.values[i]->dtype()));
    }
    side.bytes = 0;
    return side;
  }
  const auto size = static_cast<size_t>(std::max(side.bytes, kAlignment));
  side.data.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (side.data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", BytesName(side.bytes), " of tensors"));
  }
  for (size_t i = 0; i < side.parts.size(); ++i) {
    side.views.push_back(
        DenseView(side.data.get() + offsets[i], side.parts[i].shape(), side.values[i]->dtype()));
  }
  return side;
}

absl::StatusOr<CaseMemory> CaseMemory::Create(const TransferSpec& spec, int rank, int64_t seed,
                                              bool same_fill, bool late_targets) {
  CaseMemory memory;
  auto src = MakeSide(spec, true, rank, seed, same_fill, false);
  if (!src.ok()) return src.status();
  memory.src_ = *std::move(src);
  auto dst = MakeSide(spec, false, rank, seed, same_fill, late_targets);
  if (!dst.ok()) return dst.status();
  memory.dst_ = *std::move(dst);
  if (late_targets) memory.late_.resize(spec.tensors.size());
  for (size_t i = 0; i < memory.src_.parts.size(); ++i) {
    FillPart(memory.src_.parts[i], *memory.src_.values[i], DataOf(memory.src_.views[i]));
  }
  return memory;
}

int64_t CaseMemory::LateBytes(size_t tensor) const {
  return RoundUp(dst_.parts[tensor].elements() * DTypeBytes(dst_.values[tensor]->dtype()));
}

int64_t CaseMemory::whole_target_bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < late_.size(); ++i) bytes += LateBytes(i);
  return bytes;
}

absl::Status CaseMemory::AllocateTarget(size_t tensor) {
  const int64_t bytes = LateBytes(tensor);
  const auto size = static_cast<size_t>(bytes);
  late_[tensor].reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size)));
  if (late_[tensor] == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", BytesName(bytes), " of target ", tensor));
  }
  std::memset(late_[tensor].get(), kPoisonByte, size);
  dst_.views[tensor].data = late_[tensor].get();
  late_bytes_ += bytes;
  return absl::OkStatus();
}

void CaseMemory::FreeTarget(size_t tensor) {
  if (!HoldsTarget(tensor)) return;
  late_[tensor].reset();
  dst_.views[tensor].data = nullptr;
  late_bytes_ -= LateBytes(tensor);
}

int64_t CaseMemory::CountWrongTarget(size_t tensor) const {
  if (!HoldsTarget(tensor)) return 0;
  return sluice::bench::CountWrong(dst_.parts[tensor], *dst_.values[tensor],
                                   DataOf(dst_.views[tensor]));
}

void CaseMemory::PoisonTargets() {
  if (dst_.data == nullptr) return;
  std::memset(dst_.data.get(), kPoisonByte, static_cast<size_t>(dst_.bytes));
}

int64_t CaseMemory::CountWrong(const Side& side) {
  int64_t wrong = 0;
  for (size_t i = 0; i < side.parts.size(); ++i) {
    wrong += sluice::bench::CountWrong(side.parts[i], *side.values[i], DataOf(side.views[i]));
  }
  return wrong;
}

int64_t CaseMemory::CorruptTargets(const TransferSpec& spec, int rank, int64_t bytes) {
  std::vector<std::pair<size_t, ElementSpan>> mine;
  int64_t total = 0;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorTransfer& tensor = spec.tensors[i];
    for (const int target : tensor.dst.mesh.ranks()) {
      const auto part = LocalPart::Create(tensor.dst, tensor.shape, target);
      const int64_t elements = part.ok() ? part->elements() : 0;
      if (target == rank) mine.push_back({i, {total, elements, 0}});
      total += elements;
    }
  }
  for (auto& [tensor, span] : mine) {
    span.total = total;
    const TensorView& view = dst_.views[tensor];
    FlipBytes(bytes, span, DTypeBytes(view.dtype), DataOf(view));
  }
  return total;
}

Fingerprint CaseMemory::FingerprintOf(size_t tensor) const {
  return TakeFingerprint(dst_.parts[tensor], dst_.values[tensor]->dtype(),
                         DataOf(dst_.views[tensor]));
}

}  // namespace sluice::bench
