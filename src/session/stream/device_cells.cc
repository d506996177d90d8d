// Grants and publishing.
#include "session/stream/device_cells.h"

#include <utility>

#include "tensor/check.h"

namespace sluice {

bool DeviceCells::Grant(DeliveredItem item, Cell* cell) {
  if (opened_.empty() || opened_.back().closed) {
    const int buffer = delivery_->TakeFree();
    if (buffer < 0) return false;
    filled_[static_cast<size_t>(buffer)] = 0;
    opened_.push_back({buffer, false});
  }
  Opened& open = opened_.back();
  std::vector<DeliveredItem>& items = delivery_->ItemsOf(open.buffer);
  *cell = {open.buffer, static_cast<int>(items.size())};
  item.offset = static_cast<int64_t>(items.size()) * cell_bytes_;
  items.push_back(std::move(item));
  if (static_cast<int64_t>(items.size()) == batch_items_) open.closed = true;
  return true;
}

int DeviceCells::SwapCell(const Cell& cell, std::byte* memory, int block, const std::byte* data) {
  SLUICE_CHECK(batch_items_ == 1, "other items of the batch are elsewhere");
  delivery_->ItemsOf(cell.buffer)[0].offset = data - memory;
  return delivery_->SwapBuffer(cell.buffer, memory, block);
}

void DeviceCells::Fill(const Cell& cell) {
  ++filled_[static_cast<size_t>(cell.buffer)];
  PublishFull();
}

void DeviceCells::CloseOpen() {
  if (opened_.empty()) return;
  opened_.back().closed = true;
  PublishFull();
}

void DeviceCells::PublishFull() {
  for (auto at = opened_.begin(); at != opened_.end();) {
    const bool full = at->closed && filled_[static_cast<size_t>(at->buffer)] ==
                                        delivery_->ItemsOf(at->buffer).size();
    if (full) {
      delivery_->Publish(at->buffer);
      at = opened_.erase(at);
    } else if (in_order_) {
      return;
    } else {
      ++at;
    }
  }
}

}  // namespace sluice
