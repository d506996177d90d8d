// One rank's memory for a case: its source and target tensors, what they must hold, and checks.
#ifndef SLUICE_BENCH_RESHARD_CASE_MEMORY_H_
#define SLUICE_BENCH_RESHARD_CASE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "memory/mapped_memory.h"
#include "sluice/accelerator.h"
#include "sluice/session.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"
#include "workload/fill.h"
#include "workload/local_part.h"
#include "workload/local_tensor.h"

namespace sluice::bench {

// Where a case's tensors are.
struct CasePlaces {
  std::shared_ptr<Accelerator> accelerator;  // where one of the sides is on it
  bool src_on_device = false;
  bool dst_on_device = false;
  bool late_targets = false;  // targets have no memory until AllocateTarget
  Session* shared = nullptr;  // where all other host memory is of this session's AllocateShared
  bool sampled = false;       // elements are counted by a sample
};

// Memory of a device that a buffer of the host is brought to, and fetched from.
class DeviceMirror {
 public:
  DeviceMirror() = default;  // of nothing
  // Room for `bytes` bytes. `device` must outlive the mirror. ResourceExhausted as the device says.
  static absl::StatusOr<DeviceMirror> Make(Device* device, size_t bytes);

  bool exists() const { return device_ != nullptr; }
  std::byte* data() const { return memory_.data(); }

  // Copy all of it, and wait.
  absl::Status Bring(const std::byte* host);
  absl::Status Fetch(std::byte* host) const;

 private:
  Device* device_ = nullptr;
  DeviceMemory memory_;
};

// What is on a device has a twin on the host, which is filled and checked. Fetch brings it up to
// date.
class CaseMemory {
 public:
  // Allocates and fills the sources, with the mixed or the plain hash of fill.h; tensors are told
  // apart by their names. ResourceExhausted if memory cannot be had; errors of the layouts and the
  // device. Collective where memory is shared.
  static absl::StatusOr<CaseMemory> Create(const TransferSpec& spec, int rank, int64_t seed,
                                           bool mixed_fill, const CasePlaces& places = {});

  absl::Span<const TensorView> src() const { return src_.views; }
  absl::Span<const TensorView> dst() const { return dst_.views; }

  // For late targets: gives `tensor` poisoned memory, and takes it back. Both change this process's
  // resident memory by as much as target_bytes().
  absl::Status AllocateTarget(size_t tensor);
  void FreeTarget(size_t tensor);
  bool HoldsTarget(size_t tensor) const { return dst_.host[tensor] != nullptr; }
  int64_t target_bytes() const { return late_bytes_; }  // held now
  int64_t whole_target_bytes() const;                   // if all had their memory
  // 0 if `tensor` has no memory.
  int64_t CountWrongTarget(size_t tensor) const;

  // To be called between runs and checks, or fingerprints: of all tensors, or of a late target.
  absl::Status Fetch();
  absl::Status FetchTarget(size_t tensor);

  absl::Status PoisonTargets();
  // Elements of the targets that are not what the sources come to.
  int64_t CountWrongTargets() const { return CountWrong(dst_); }
  // Elements of the sources that have changed.
  int64_t CountWrongSources() const { return CountWrong(src_); }
  // This rank's share of flipping `bytes` bytes of the targets of all ranks. Returns the number of
  // elements that all targets have together.
  int64_t CorruptTargets(const TransferSpec& spec, int rank, int64_t bytes);
  // Of target `tensor`.
  Fingerprint FingerprintOf(size_t tensor) const;

 private:
  struct Side {
    std::shared_ptr<std::byte> data;
    int64_t bytes = 0;
    std::vector<LocalPart> parts;
    std::vector<std::unique_ptr<const Values>> values;  // that the tensors must hold
    std::vector<std::byte*> host;                       // the tensors on the host
    std::vector<TensorView> views;
    DeviceMirror mirror;  // of `data`, where they are on a device
  };
  // Of a target.
  struct Late {
    MappedMemory data;
    DeviceMirror mirror;
  };
  CaseMemory() = default;
  absl::Status OpenDevice(const CasePlaces& places);
  // Has the views of `side` lie on the device.
  absl::Status Mirror(Side* side) const;
  TensorView ViewOnDevice(const LocalPart& part, std::byte* data, DType dtype) const;
  static absl::StatusOr<Side> MakeSide(const TransferSpec& spec, bool is_source, int rank,
                                       int64_t seed, bool mixed_fill, const CasePlaces& places);
  int64_t CountWrong(const Side& side) const;
  int64_t LateBytes(size_t tensor) const;

  std::shared_ptr<Accelerator> accelerator_;
  std::unique_ptr<Device> device_;  // null: everything is on the host
  bool late_on_device_ = false;
  bool sampled_ = false;
  Side src_;
  Side dst_;
  std::vector<Late> late_;  // of targets, by tensor
  int64_t late_bytes_ = 0;
};

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_RESHARD_CASE_MEMORY_H_
