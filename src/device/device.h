// The seam to memory: where staging lives and who copies between it and tensors.
//
// A device copies, casts, reduces, normalizes and allocates; it decides nothing.
#ifndef SLUICE_SRC_DEVICE_DEVICE_H_
#define SLUICE_SRC_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/normalization.h"
#include "device/reduction.h"
#include "device/strided_copy.h"
#include "sluice/accelerator.h"
#include "sluice/tensor.h"

namespace sluice {

// Memory that a device gave out; freed when destroyed. Movable only.
class DeviceMemory {
 public:
  using Deleter = void (*)(std::byte* data, size_t bytes, int ordinal);

  DeviceMemory() = default;
  // `ordinal` is that of the device that gave it.
  DeviceMemory(std::byte* data, size_t bytes, Deleter deleter, int ordinal = 0)
      : data_(data), bytes_(bytes), deleter_(deleter), ordinal_(ordinal) {}
  DeviceMemory(DeviceMemory&& other) noexcept { *this = static_cast<DeviceMemory&&>(other); }
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    Free();
    data_ = other.data_, bytes_ = other.bytes_;
    deleter_ = other.deleter_, ordinal_ = other.ordinal_;
    other.data_ = nullptr, other.bytes_ = 0;
    return *this;
  }
  ~DeviceMemory() { Free(); }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

  // Gives the memory up without freeing it, for good.
  void Abandon() {
    data_ = nullptr;
    bytes_ = 0;
  }

 private:
  void Free() {
    if (data_ != nullptr) deleter_(data_, bytes_, ordinal_);
    data_ = nullptr;
  }
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  Deleter deleter_ = nullptr;
  int ordinal_ = 0;
};

// A place in the work of a stream, which other streams and the host can wait for: an event. Marks
// nothing, and has passed, until it is recorded; can be recorded anew. Thread: any, one at a time.
class Fence {
 public:
  virtual ~Fence() = default;

  // Marks the end of what `stream` holds now.
  virtual absl::Status Record(StreamHandle stream) = 0;
  // Puts later work of `stream` behind the mark.
  virtual absl::Status HoldBack(StreamHandle stream) = 0;
  // True once the stream has got past the mark. Does not wait.
  virtual absl::StatusOr<bool> Passed() = 0;
};

// The purpose of a batch, so that devices can do several at once. One of kAny comes after all
// batches that were started before it and before all that are started later. The same holds with
// what a transport does in stream order. Batches of the other kinds keep the order among their own
// kind, and with those of kAny.
enum class BatchStage : uint8_t {
  kAny,
  kFill,  // writes what a transport is given later, and reads what no other batch writes
  // Reads what a transport has handed out, or what no other batch writes. An empty batch is
  // complete when all is that was handed out before, and all before it but what fills.
  kDrain,
};

// Few bytes that are consecutive on both sides. Both are memory that the device gives out, and one
// at least is of its own.
struct SmallCopy {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  uint32_t bytes = 0;
};

// All that one stage of one bucket does to bytes: copies in any order, then reductions one after
// the other, then normalizations in any order. An empty one is complete when all before it is.
struct CopyBatch {
  absl::Span<const StridedCopy> copies = {};
  uint64_t cookie = 0;
  absl::Span<const Reduction> reductions = {};
  absl::Span<const Normalization> normalizations = {};
  // True: its cookie may come as soon as all later work will find it done. This is all that the
  // device does later, and all that a transport does in stream order. False: when its effects can
  // be seen from anywhere.
  bool in_stream_order = false;
  // Fences of MakeFence, or null, and for batches of kAny only. The batch, and all later ones, come
  // after `after`; `then` marks its end.
  Fence* after = nullptr;
  Fence* then = nullptr;
  BatchStage stage = BatchStage::kAny;
  absl::Span<const SmallCopy> small_copies = {};  // in any order with the other copies
};

// From when a batch's first work could begin to when its last was done, on CLOCK_MONOTONIC.
struct DeviceSpan {
  uint64_t cookie = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int row = 0;  // 0 or 1: spans of one row do not overlap
};

// The kinds of memory that a device gives out, and the batches that suit it. Copies say of each
// side which kind of memory it is: any host memory (kCpu), or one of these.
struct DeviceTraits {
  DeviceKind staging = DeviceKind::kCpu;
  DeviceKind buffers = DeviceKind::kCpu;
  // So many copies, reductions or normalizations a batch are best, where a stage has as many. Each
  // batch costs the device something. A large one keeps its caller from other work.
  size_t batch_items = 32;
  // Beside them so many copies of at most so many bytes; 0: the device knows no small copies.
  size_t batch_small_copies = 0;
  int64_t small_copy_bytes = 0;
  // Start returns once copies are carried out: whoever has small ones may as well do so.
  bool copies_inline = false;
};

class Device {
 public:
  explicit Device(const DeviceTraits& traits) : traits_(traits) {}
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  // Waits for what has been started.
  virtual ~Device() = default;

  const DeviceTraits& traits() const { return traits_; }
  // True if staging lies where consumers look for items, so that what was read or received there
  // can be handed over as it lies.
  bool staging_is_device_memory() const { return traits_.staging == traits_.buffers; }

  // Staging memory on the host, page-aligned, which the device reaches, too. Physical pages come
  // with first use, if the device allows. They are near the CPUs that the process is bound to at
  // the call. ResourceExhausted names the bytes. No memory (data() is null) for 0 bytes.
  virtual absl::StatusOr<DeviceMemory> AllocateStaging(size_t bytes) = 0;

  // The same of the device's own memory, for what consumers are to find there. Aligned to 64 bytes
  // at least. The host device's is page-aligned and like staging.
  virtual absl::StatusOr<DeviceMemory> AllocateBuffer(size_t bytes) = 0;

  // FailedPrecondition where there are no streams: on the host device.
  virtual absl::StatusOr<std::unique_ptr<Fence>> MakeFence() = 0;

  // Starts a batch; its spans, and what they refer to but memory, need to live only for the call.
  // Batches take effect in the order in which they were started, but for what their stages allow.
  // ResourceExhausted, and nothing is done, while kMaxOutstanding batches are started and not
  // polled. After an error of the device: that error, unless the batch is of nothing.
  virtual absl::Status Start(const CopyBatch& batch) = 0;

  // Fills `cookies` from the front with batches that are complete; returns how many. An error
  // concerns the device as a whole, and is returned once. Later polls return what is outstanding as
  // if it were complete, once it touches no memory any more.
  virtual absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies) = 0;

  // When the device was busy with batches, as far as it records that, one span after the other.
  // Returns what has ended and was not taken yet. Nothing from the host device.
  virtual std::vector<DeviceSpan> TakeSpans() = 0;

  static constexpr int kMaxOutstanding = 64;

 private:
  const DeviceTraits traits_;
};

// Does its work with the calling thread, inside Start.
std::unique_ptr<Device> MakeHostDevice();

}  // namespace sluice

#endif  // SLUICE_SRC_DEVICE_DEVICE_H_
