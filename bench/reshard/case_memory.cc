// Filling, poisoning and checking all tensors of a case.
#include "reshard/case_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "device/copy_flat.h"
#include "sluice/status.h"
#include "tensor/round.h"
#include "workload/fill.h"
#include "workload/layout_ranks.h"
#include "workload/local_tensor.h"
#include "workload/numbers.h"
#include "workload/reduced_values.h"

namespace sluice::bench {
namespace {

constexpr int64_t kAlignment = 4096;

std::unique_ptr<const Values> MakeValues(const TensorTransfer& tensor, bool is_source, int rank,
                                         const Fill& fill) {
  if (is_source) return std::make_unique<Filler>(MakeSourceFiller(tensor, rank, fill));
  if (HasPartial(tensor.src)) return std::make_unique<ReducedValues>(tensor, fill);
  return std::make_unique<Filler>(tensor.dst_dtype, fill.modulus, fill.HashOf(tensor.name));
}

absl::StatusOr<std::shared_ptr<std::byte>> Allocate(size_t bytes, Session* shared) {
  if (shared != nullptr) return shared->AllocateShared(static_cast<int64_t>(bytes));
  auto* const data = static_cast<std::byte*>(std::aligned_alloc(kAlignment, bytes));
  if (data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", BytesName(static_cast<int64_t>(bytes)), " of tensors"));
  }
  return std::shared_ptr<std::byte>(data, [](std::byte* memory) { std::free(memory); });
}

}  // namespace

absl::StatusOr<DeviceMirror> DeviceMirror::Make(Device* device, size_t bytes) {
  DeviceMirror mirror;
  mirror.device_ = device;
  SLUICE_ASSIGN_OR_RETURN(mirror.memory_, device->AllocateBuffer(bytes));
  return mirror;
}

absl::Status DeviceMirror::Bring(const std::byte* host) {
  return CopyFlat(device_, host, DeviceKind::kCpu, memory_.data(), device_->traits().buffers,
                  memory_.bytes());
}

absl::Status DeviceMirror::Fetch(std::byte* host) const {
  return CopyFlat(device_, memory_.data(), device_->traits().buffers, host, DeviceKind::kCpu,
                  memory_.bytes());
}

absl::StatusOr<CaseMemory::Side> CaseMemory::MakeSide(const TransferSpec& spec, bool is_source,
                                                      int rank, int64_t seed, bool mixed_fill,
                                                      const CasePlaces& places) {
  Side side;
  std::vector<int64_t> offsets;
  const Fill fill = {FillModulus(spec), seed, mixed_fill};
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorTransfer& tensor = spec.tensors[i];
    const DType dtype = is_source ? tensor.src_dtype : tensor.dst_dtype;
    SLUICE_ASSIGN_OR_RETURN(
        auto part, LocalPart::Create(is_source ? tensor.src : tensor.dst, tensor.shape, rank));
    side.values.push_back(MakeValues(tensor, is_source, rank, fill));
    offsets.push_back(side.bytes);
    side.bytes += RoundUp(part.elements() * DTypeBytes(dtype), kAlignment);
    side.parts.push_back(std::move(part));
  }
  if (places.late_targets && !is_source) {
    for (size_t i = 0; i < side.parts.size(); ++i) {
      side.views.push_back(side.parts[i].View(nullptr, side.values[i]->dtype()));
      side.host.push_back(nullptr);
    }
    side.bytes = 0;
    return side;
  }
  const auto size = static_cast<size_t>(std::max(side.bytes, kAlignment));
  SLUICE_ASSIGN_OR_RETURN(side.data, Allocate(size, places.shared));
  for (size_t i = 0; i < side.parts.size(); ++i) {
    side.host.push_back(side.data.get() + offsets[i]);
    side.views.push_back(side.parts[i].View(side.host[i], side.values[i]->dtype()));
  }
  return side;
}

absl::StatusOr<CaseMemory> CaseMemory::Create(const TransferSpec& spec, int rank, int64_t seed,
                                              bool mixed_fill, const CasePlaces& places) {
  CaseMemory memory;
  memory.sampled_ = places.sampled;
  SLUICE_RETURN_IF_ERROR(memory.OpenDevice(places));
  SLUICE_ASSIGN_OR_RETURN(memory.src_, MakeSide(spec, true, rank, seed, mixed_fill, places));
  SLUICE_ASSIGN_OR_RETURN(memory.dst_, MakeSide(spec, false, rank, seed, mixed_fill, places));
  if (places.late_targets) memory.late_.resize(spec.tensors.size());
  for (size_t i = 0; i < memory.src_.parts.size(); ++i) {
    FillPart(memory.src_.parts[i], *memory.src_.values[i], memory.src_.host[i]);
  }
  absl::Status status;
  if (places.src_on_device) status = memory.Mirror(&memory.src_);
  if (status.ok() && places.dst_on_device && !places.late_targets) {
    status = memory.Mirror(&memory.dst_);
  }
  // Also so that physical memory is there before anything is measured.
  status.Update(memory.PoisonTargets());
  if (!status.ok()) return status;
  return memory;
}

absl::Status CaseMemory::OpenDevice(const CasePlaces& places) {
  if (!places.src_on_device && !places.dst_on_device) return absl::OkStatus();
  SLUICE_ASSIGN_OR_RETURN(device_, places.accelerator->OpenDevice());
  accelerator_ = places.accelerator;
  late_on_device_ = places.dst_on_device;
  return absl::OkStatus();
}

absl::Status CaseMemory::Mirror(Side* side) const {
  const auto size = static_cast<size_t>(std::max(side->bytes, kAlignment));
  SLUICE_ASSIGN_OR_RETURN(side->mirror, DeviceMirror::Make(device_.get(), size));
  for (size_t i = 0; i < side->views.size(); ++i) {
    std::byte* const data = side->mirror.data() + (side->host[i] - side->data.get());
    side->views[i] = ViewOnDevice(side->parts[i], data, side->values[i]->dtype());
  }
  return side->mirror.Bring(side->data.get());
}

TensorView CaseMemory::ViewOnDevice(const LocalPart& part, std::byte* data, DType dtype) const {
  const auto place = [this](TensorView* view) {
    view->device = accelerator_->kind();
    view->device_ordinal = accelerator_->ordinal();
  };
  TensorView view = part.View(data, dtype);
  place(&view);
  for (TensorView& box : view.boxes) place(&box);
  return view;
}

int64_t CaseMemory::LateBytes(size_t tensor) const {
  return RoundUp(dst_.parts[tensor].elements() * DTypeBytes(dst_.values[tensor]->dtype()),
                 kAlignment);
}

int64_t CaseMemory::whole_target_bytes() const {
  int64_t bytes = 0;
  for (size_t i = 0; i < late_.size(); ++i) bytes += LateBytes(i);
  return bytes;
}

absl::Status CaseMemory::AllocateTarget(size_t tensor) {
  const int64_t bytes = LateBytes(tensor);
  const auto size = static_cast<size_t>(bytes);
  Late& late = late_[tensor];
  late.data = MapMemory(std::max(size, static_cast<size_t>(kAlignment)));
  if (late.data == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", BytesName(bytes), " of target ", tensor));
  }
  std::memset(late.data.get(), kPoisonByte, size);
  dst_.host[tensor] = late.data.get();
  const DType dtype = dst_.values[tensor]->dtype();
  dst_.views[tensor] = dst_.parts[tensor].View(late.data.get(), dtype);
  if (late_on_device_) {
    SLUICE_ASSIGN_OR_RETURN(late.mirror, DeviceMirror::Make(device_.get(), size));
    dst_.views[tensor] = ViewOnDevice(dst_.parts[tensor], late.mirror.data(), dtype);
    SLUICE_RETURN_IF_ERROR(late.mirror.Bring(late.data.get()));
  }
  late_bytes_ += bytes;
  return absl::OkStatus();
}

void CaseMemory::FreeTarget(size_t tensor) {
  if (!HoldsTarget(tensor)) return;
  late_[tensor] = Late();
  dst_.host[tensor] = nullptr;
  dst_.views[tensor] = dst_.parts[tensor].View(nullptr, dst_.values[tensor]->dtype());
  late_bytes_ -= LateBytes(tensor);
}

int64_t CaseMemory::CountWrongTarget(size_t tensor) const {
  if (!HoldsTarget(tensor)) return 0;
  return sluice::bench::CountWrong(dst_.parts[tensor], *dst_.values[tensor], dst_.host[tensor],
                                   sampled_);
}

absl::Status CaseMemory::Fetch() {
  for (const Side* side : {&src_, &dst_}) {
    if (!side->mirror.exists()) continue;
    SLUICE_RETURN_IF_ERROR(side->mirror.Fetch(side->data.get()));
  }
  return absl::OkStatus();
}

absl::Status CaseMemory::FetchTarget(size_t tensor) {
  const Late& late = late_[tensor];
  return late.mirror.exists() ? late.mirror.Fetch(late.data.get()) : absl::OkStatus();
}

absl::Status CaseMemory::PoisonTargets() {
  if (dst_.data == nullptr) return absl::OkStatus();
  std::memset(dst_.data.get(), kPoisonByte, static_cast<size_t>(dst_.bytes));
  return dst_.mirror.exists() ? dst_.mirror.Bring(dst_.data.get()) : absl::OkStatus();
}

int64_t CaseMemory::CountWrong(const Side& side) const {
  int64_t wrong = 0;
  for (size_t i = 0; i < side.parts.size(); ++i) {
    wrong += sluice::bench::CountWrong(side.parts[i], *side.values[i], side.host[i], sampled_);
  }
  return wrong;
}

int64_t CaseMemory::CorruptTargets(const TransferSpec& spec, int rank, int64_t bytes) {
  std::vector<std::pair<size_t, ElementSpan>> mine;
  int64_t total = 0;
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    const TensorTransfer& tensor = spec.tensors[i];
    for (const int target : RanksOf(tensor.dst)) {
      const auto part = LocalPart::Create(tensor.dst, tensor.shape, target);
      const int64_t elements = part.ok() ? part->elements() : 0;
      if (target == rank) mine.push_back({i, {total, elements, 0}});
      total += elements;
    }
  }
  for (auto& [tensor, span] : mine) {
    span.total = total;
    const TensorView& view = dst_.views[tensor];
    FlipBytes(bytes, span, DTypeBytes(view.dtype), dst_.host[tensor]);
  }
  return total;
}

Fingerprint CaseMemory::FingerprintOf(size_t tensor) const {
  return TakeFingerprint(dst_.parts[tensor], dst_.values[tensor]->dtype(), dst_.host[tensor]);
}

}  // namespace sluice::bench
