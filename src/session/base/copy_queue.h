// Collects the copies of a bucket's stage into batches, and hands them to the device.
#ifndef SLUICE_SRC_SESSION_BASE_COPY_QUEUE_H_
#define SLUICE_SRC_SESSION_BASE_COPY_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "device/device.h"
#include "sluice/tensor.h"
#include "tensor/stretch.h"

namespace sluice {

// Copies come first in a batch, reductions after them; batches are carried out one after the other.
//
// A device takes so many batches at a time, and its streams may wait for what only this thread can
// do. So nothing here waits for room: a stage that finds none is called again when there is some.
class CopyQueue {
 public:
  // Marks under way, at most.
  static constexpr int kMarksMax = Device::kMaxOutstanding / 4;

  // `device` must outlive this object. `in_stream_order`: as in CopyBatch.
  explicit CopyQueue(Device* device, bool in_stream_order = false);

  // Copies that are added next belong to `cookie` and `stage`. `*pending` counts their batches that
  // have not ended, and must stay where it is until they have.
  void Begin(uint64_t cookie, int* pending, BatchStage stage = BatchStage::kAny) {
    cookie_ = cookie;
    pending_ = pending;
    stage_ = stage;
  }
  // The device's error; or ResourceExhausted, where it takes no more batches: see HasRoom.
  absl::Status Add(const StridedCopy& copy);
  // A stretch of memory whose elements lie one after another.
  struct Flat {
    const std::byte* data = nullptr;
    DType dtype = DType::kU8;
    DeviceKind kind = DeviceKind::kCpu;
  };
  // `elements` from `src` to `dst` (which is written), cast where the types differ.
  absl::Status AddFlat(const Flat& src, const Flat& dst, int64_t elements);
  absl::Status Add(const Reduction& reduction);
  absl::Status Add(const Normalization& normalization);
  // Starts the copies that have been added. Copies that are added next see their results.
  absl::Status Flush();

  // True if a stage may add what fits into kSpare batches. To be asked before that; what needs more
  // asks again.
  absl::StatusOr<bool> HasRoom();
  // The most items that are one batch.
  size_t batch_items() const { return copies_.size(); }
  // Counts one more batch of the stage, which ends when there is room.
  void AwaitRoom();
  // So many stages can await room without an allocation.
  void ReserveWaiting(size_t stages) { waiting_.reserve(stages); }

  // A batch of nothing, with a cookie of its own. It ends when all earlier drains are complete, and
  // all that a transport in stream order has handed out.
  absl::Status Mark(uint64_t cookie);
  // In stream order: has what is flushed later come after `after`, or marks this place as `then`.
  // Either is done once HasEnded is true of the number that Order returns.
  absl::StatusOr<int64_t> Order(Fence* after, Fence* then);
  bool HasEnded(int64_t order) const { return orders_ended_ >= order; }
  // A batch of nothing, of which outstanding() alone tells, also after a failure. It ends when the
  // device has come past all that it, or a transport in stream order, has been given.
  absl::Status Finish();

  // Batches of copies since the beginning.
  int64_t begun() const { return begun_; }
  // Batches that have not been given out by Poll, and stages that await room.
  int outstanding() const { return outstanding_ + static_cast<int>(waiting_.size()); }
  // Fills `cookies` with batches that have ended; returns how many. The caller counts them down.
  absl::StatusOr<int> Poll(absl::Span<uint64_t> cookies);

 private:
  // Adds the copy. Null: it is a small one, which refers to no runs.
  absl::StatusOr<StridedCopy*> Place(const StridedCopy& copy);
  // Makes it a small copy, if the device knows these and it is one.
  bool MakeSmall(const StridedCopy& copy, SmallCopy* small) const;
  absl::Status Begin(const CopyBatch& batch);
  bool is_full(int batches) const {
    return outstanding_ - static_cast<int>(ended_.size()) >= batches;
  }
  absl::Status TakeEnded();
  // Fills `cookies` with stages that await room, if there is some: with all of them, because the
  // first may not need it.
  int CallIn(absl::Span<uint64_t> cookies);
  static constexpr uint64_t kOrder = ~uint64_t{0};  // a cookie
  // From kFull batches with the device on, there is room only for marks, the last one of Finish,
  // and those of stages let in.
  static constexpr int kSpare = Device::kMaxOutstanding / 8;
  static constexpr int kFull = Device::kMaxOutstanding - kMarksMax - 1 - kSpare;

  Device* const device_;
  const bool in_stream_order_;
  uint64_t cookie_ = 0;
  int* pending_ = nullptr;
  BatchStage stage_ = BatchStage::kAny;
  // As long as the device wants batches; the first so many of them are added.
  std::vector<StridedCopy> copies_;
  std::vector<SmallCopy> small_copies_;  // the same
  std::vector<Stretch> flat_runs_;       // of the copies that AddFlat made, by their places
  std::vector<Reduction> reductions_;
  std::vector<Normalization> normalizations_;
  size_t copy_count_ = 0;
  size_t small_count_ = 0;
  size_t reduction_count_ = 0;
  size_t normalization_count_ = 0;
  int64_t begun_ = 0;
  int outstanding_ = 0;
  int64_t orders_begun_ = 0;
  int64_t orders_ended_ = 0;
  // Cookies of batches that ended while there was no room for another to start. As long as the
  // largest bucket has made it.
  std::vector<uint64_t> ended_;
  std::vector<uint64_t> waiting_;  // for room: cookies, in order
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_COPY_QUEUE_H_
