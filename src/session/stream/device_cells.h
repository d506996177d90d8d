// Places for items in device buffers: granted in the order of delivery, published when full.
//
// A buffer has as many cells as a batch has items. Thread: the session's.
#ifndef SLUICE_SRC_SESSION_STREAM_DEVICE_CELLS_H_
#define SLUICE_SRC_SESSION_STREAM_DEVICE_CELLS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "session/stream/delivery.h"

namespace sluice {

struct Cell {
  int buffer = -1;  // -1: none
  int index = 0;
};

class DeviceCells {
 public:
  // `in_order`: buffers are published in the order in which they were opened.
  DeviceCells(Delivery* delivery, int64_t batch_items, int64_t cell_bytes, bool in_order)
      : delivery_(delivery),
        batch_items_(batch_items),
        cell_bytes_(cell_bytes),
        in_order_(in_order),
        filled_(static_cast<size_t>(delivery->buffers())) {}

  // Grants a place for `item`, whose offset is set. False if there is none now.
  bool Grant(DeliveredItem item, Cell* cell);
  std::byte* MemoryOf(const Cell& cell) const {
    return delivery_->MemoryOf(cell.buffer) + int64_t{cell.index} * cell_bytes_;
  }
  // The cell's item begins at `data` in `memory`, the block of number `block`. This block takes the
  // place of the cell's buffer, whose number is returned. Only where a batch is one item.
  int SwapCell(const Cell& cell, std::byte* memory, int block, const std::byte* data);
  // The cell's item turns out to be of this shape.
  void SetShape(const Cell& cell, std::vector<int64_t> shape) {
    delivery_->ItemsOf(cell.buffer)[static_cast<size_t>(cell.index)].shape = std::move(shape);
  }
  // Bytes of the cell's item are lent. `item` is where all of it lies there; null: it lies in its
  // cell. `end` is of the lent bytes, in their object.
  void Lend(const Cell& cell, const std::byte* item, int64_t bytes,
            std::shared_ptr<const LentMemory> lender, int64_t end);
  // Bytes that were lent, and copied into cells all the same.
  int64_t bytes_copied() const { return bytes_copied_; }
  // The fence of the cell's buffer.
  Fence* ReadyFence(const Cell& cell) const { return delivery_->ReadyFence(cell.buffer); }
  // The item of the cell is there.
  void Fill(const Cell& cell);
  // No more items go into the buffer that is being granted.
  void CloseOpen();

 private:
  struct Opened {
    int buffer;
    bool closed;
  };
  void PublishFull();
  // Makes a batch lie in one place, if its items are lent here and there.
  void Gather(int buffer);

  Delivery* const delivery_;
  const int64_t batch_items_;
  const int64_t cell_bytes_;
  const bool in_order_;
  std::vector<size_t> filled_;  // cells, by buffer
  std::deque<Opened> opened_;   // not published; only the last may be open
  int64_t bytes_copied_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_STREAM_DEVICE_CELLS_H_
