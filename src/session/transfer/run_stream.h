// The order between a run and the stream of the caller's that it takes part in.
//
// Two streams meet here: the caller's, and the session's, which does the run's work. Fences keep
// their order in both directions, and no host waits for them but where it has to.
//
//   Mark -> Open -> AwaitMarks   the session's stream comes after the caller's
//   BeginMark -> TakeMark -> HoldBack, End   the caller's stream comes after the session's
#ifndef SLUICE_SRC_SESSION_TRANSFER_RUN_STREAM_H_
#define SLUICE_SRC_SESSION_TRANSFER_RUN_STREAM_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "device/device.h"
#include "session/base/copy_queue.h"
#include "sluice/accelerator.h"

namespace sluice {

// Puts nothing into the caller's stream but in Mark, HoldBack and End. Keeps its fences for later
// runs: one for each window that was marked and is not open, and kMarks + 3.
class RunStream {
 public:
  // How a session does its work.
  struct Ways {
    // A bucket counts as done when its work is in the session's stream, rather than when it has
    // ended.
    bool done_in_order = false;
    // Work of the network in device memory comes after all that the session's stream holds.
    bool network_is_behind = true;
  };

  // Begins anew, for a run in `stream`, or in none. No order of the run before may be under way.
  void Reset(const absl::optional<StreamHandle>& stream);
  // Begins a run in a stream. `device` must outlive this object, and be the same for all runs.
  void Begin(Device* device, const Ways& ways, size_t windows);

  bool is_there() const { return stream_.has_value(); }
  bool done_in_order() const { return device_ != nullptr && ways_.done_in_order; }

  // ---- The session's stream after the caller's.

  // Puts the window's work behind all that the caller's stream holds now. `on_device`: the memory
  // that this is about is device memory. Before Open; again for more memory. Does nothing before
  // Begin.
  absl::Status Mark(size_t window, bool on_device);
  // The window may begin as soon as waits() is false.
  void Open(size_t window);
  bool waits() const { return !opened_.empty(); }
  // Brings that about; true if it got on.
  absl::StatusOr<bool> AwaitMarks(CopyQueue* copies);
  // True while the caller's stream has not come to the last mark that the host does not wait for.
  // The device may wait for the caller as long.
  bool IsHeldBack() const { return newest_ != nullptr && !HasPassed(*newest_); }
  // After the run, that mark is one of `marks`. Marks that have been passed are taken instead.
  void HandOver(std::vector<std::unique_ptr<Fence>>* marks);
  // True also if the device has failed, which others tell.
  static bool HasPassed(Fence& fence) { return fence.Passed().value_or(true); }

  // ---- The caller's stream after the session's.

  // Marks are numbered, from 1 on. One can begin if none is under way, and fewer than kMarks of
  // them are not held back behind.
  static constexpr uint64_t kMarks = 8;
  bool CanBeginMark() const { return begun_ == made_ && begun_ - held_ < kMarks; }
  // Marks the end of all that has been given to the session's stream. False: there was no room.
  absl::StatusOr<bool> BeginMark(CopyQueue* copies);
  // True, once, as soon as mark last_mark() is made.
  bool TakeMark(const CopyQueue& copies);
  uint64_t last_mark() const { return made_; }
  // Puts all that the caller's stream gets from now on behind the mark, which is made.
  absl::Status HoldBack(uint64_t mark);
  // The same with all that has been given to the session's stream, and no order is under way any
  // more; true once that is so. Call it again if not.
  absl::StatusOr<bool> End(CopyQueue* copies);

 private:
  struct Window {
    std::unique_ptr<Fence> fence;  // null: not marked
    bool host_waits = false;
  };
  struct Opened {
    Window window;
    int64_t order = 0;  // 0: not given
  };
  absl::StatusOr<std::unique_ptr<Fence>> TakeFence();
  absl::Status FillFence(std::unique_ptr<Fence>* fence);
  absl::StatusOr<bool> Order(CopyQueue* copies, Fence* after, Fence* then);
  void Retire(Window window);

  absl::optional<StreamHandle> stream_;
  Device* device_ = nullptr;  // null: not begun
  Ways ways_;
  int64_t last_order_ = 0;  // of all that were given; 0: none

  std::vector<std::unique_ptr<Fence>> spare_;
  std::vector<Window> windows_;
  std::vector<Opened> opened_;  // in order
  // The mark of the last window that the session's stream was put behind without a wait of the
  // host.
  std::unique_ptr<Fence> newest_;

  std::array<std::unique_ptr<Fence>, kMarks> marks_;  // by number, modulo
  uint64_t begun_ = 0;
  uint64_t made_ = 0;
  uint64_t held_ = 0;  // the caller's stream is behind it
  std::unique_ptr<Fence> end_;
  bool ends_ = false;  // its order is given
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_TRANSFER_RUN_STREAM_H_
