// Device buffers on their way from a stream to its consumer and back, without a lock.
//
// Two threads meet here: the session's fills buffers and publishes them, the consumer's takes and
// releases them. A buffer belongs to one of them at any time.
#ifndef SLUICE_SRC_SESSION_STREAM_DELIVERY_H_
#define SLUICE_SRC_SESSION_STREAM_DELIVERY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "device/device.h"
#include "plan/shard/cursor.h"
#include "sluice/stream.h"
#include "storage/source.h"

namespace sluice {

// An item that lies in a buffer.
struct DeliveredItem {
  int64_t item = 0;
  int64_t epoch = 0;
  int64_t position = 0;
  int64_t offset = 0;  // bytes from the buffer's beginning
  // Not null: the item lies in memory of the source's instead, which may only be read.
  const std::byte* lent = nullptr;
  // Not null: bytes of the item are lent, or were copied from such; up to this one of its object.
  std::shared_ptr<const LentMemory> lender = nullptr;
  int64_t lent_bytes = 0;
  int64_t lent_end = 0;
  DType dtype = DType::kU8;
  std::vector<int64_t> shape;
};

// The memory of buffers at first: one behind the other, `stride` bytes apart, from `data` on.
struct DeliveryMemory {
  std::shared_ptr<DeviceMemory> owner;  // lives as long as a lease of it
  std::byte* data = nullptr;
  int64_t stride = 0;
  int first_block = 0;  // the number of the first one, for those who know blocks by numbers
  DeviceKind kind = DeviceKind::kCpu;
  int32_t ordinal = 0;
  // None in host memory; otherwise two for each buffer: passed when its items are there, and when
  // the streams that read them have ended.
  std::vector<std::unique_ptr<Fence>> ready;
  std::vector<std::unique_ptr<Fence>> released;
};

class Delivery {
 public:
  Delivery(DeliveryMemory memory, int buffers, int64_t batch_items);

  int buffers() const { return static_cast<int>(buffers_.size()); }

  // ---- The session's thread.

  // A buffer that is free, which now is the caller's; -1 if there is none.
  int TakeFree();
  // True if the last TakeFree has met a buffer that streams of the device still use.
  bool waits_for_device() const { return waits_for_device_; }
  std::byte* MemoryOf(int buffer) const { return At(buffer).memory; }
  // A buffer that is the caller's lies in `memory`, of number `block`, from now on; returns the
  // number of where it lay.
  int SwapBuffer(int buffer, std::byte* memory, int block);
  // Items of a buffer that is the caller's. Room for batch_items of them is kept.
  std::vector<DeliveredItem>& ItemsOf(int buffer) { return At(buffer).items; }
  // To be recorded before the buffer is published, if not all of it is there.
  Fence* ReadyFence(int buffer) const { return memory_.ready[static_cast<size_t>(buffer)].get(); }
  // Hands the buffer to the consumer, behind all earlier ones.
  void Publish(int buffer);
  // Nothing more will be published: all is there, or `status` is why not.
  void End(const absl::Status& status);
  // When the consumer began to wait, on MonotonicNs's clock; INT64_MAX if it does not.
  int64_t waiting_since_ns() const { return waiting_since_ns_.load(std::memory_order_relaxed); }

  // ---- The consumer's thread.

  enum class State : uint8_t { kReady, kNotReady, kAllLeased, kEnd };
  State state() const;
  // The end's status; meaningful in kEnd.
  const absl::Status& status() const { return status_; }
  // Takes the first published buffer; only in kReady.
  static Lease Take(const std::shared_ptr<Delivery>& self);
  // Marks the beginning and the end of a wait.
  void BeginWait(int64_t now_ns) { waiting_since_ns_.store(now_ns, std::memory_order_relaxed); }
  void EndWait() { waiting_since_ns_.store(INT64_MAX, std::memory_order_relaxed); }
  // Sleeps until state() may have changed. Only where another thread makes progress.
  void Sleep();
  absl::Status AwaitInStream(int buffer, StreamHandle stream) const;
  void Release(int buffer);
  // The same once `stream` has come so far. An error, and the buffer is not released.
  absl::Status ReleaseInStream(int buffer, StreamHandle stream);
  DeviceKind kind() const { return memory_.kind; }
  int32_t ordinal() const { return memory_.ordinal; }
  // Told of each release: before the buffer is free again, and after. Null once there is nobody.
  struct Listener {
    virtual ~Listener() = default;
    virtual void Releasing(int buffer, absl::Span<const DeliveredItem> items) = 0;
    virtual void Released() = 0;
  };
  void set_listener(Listener* listener) { listener_ = listener; }
  // The stream is over, and nothing more is filled or taken: gives back what was lent to buffers
  // that are not leased.
  void ForgetUntaken();

  // A lease's.
  std::byte* DataOf(int buffer, const DeliveredItem& item) const {
    if (item.lent == nullptr) return MemoryOf(buffer) + item.offset;
    return const_cast<std::byte*>(item.lent);  // NOLINT: sluice/stream.h tells its consumer
  }
  const std::vector<DeliveredItem>& LeasedItems(int buffer) const { return At(buffer).items; }

 private:
  struct Buffer {
    std::byte* memory = nullptr;
    int block = 0;
    std::vector<DeliveredItem> items;
    bool leased = false;  // the consumer's to know
    bool fenced = false;  // in use until its fence has passed; handed over by `free`
    std::atomic<bool> free{true};
  };
  bool IsPastFence(int buffer);

  Buffer& At(int buffer) { return *buffers_[static_cast<size_t>(buffer)]; }
  const Buffer& At(int buffer) const { return *buffers_[static_cast<size_t>(buffer)]; }
  void Wake();

  const DeliveryMemory memory_;
  bool waits_for_device_ = false;
  std::vector<std::unique_ptr<Buffer>> buffers_;

  // A ring of published buffers: never more than there are.
  std::vector<int> ring_;
  std::atomic<uint64_t> published_{0};
  std::atomic<bool> ended_{false};
  absl::Status status_;  // written before ended_
  std::atomic<uint32_t> changes_{0};
  std::atomic<int64_t> waiting_since_ns_{INT64_MAX};

  uint64_t taken_ = 0;  // the consumer's
  int leased_ = 0;      // the consumer's
  Listener* listener_ = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_DELIVERY_H_
