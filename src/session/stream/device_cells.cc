// Grants and publishing.
#include "session/stream/device_cells.h"

#include <cstring>
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

void DeviceCells::Lend(const Cell& cell, const std::byte* data, int64_t bytes,
                       std::shared_ptr<const LentMemory> lender, int64_t end) {
  DeliveredItem& item = delivery_->ItemsOf(cell.buffer)[static_cast<size_t>(cell.index)];
  item.lent = data;
  item.lent_bytes = bytes;
  item.lender = std::move(lender);
  item.lent_end = end;
}

// Items of a batch are lent where they are neighbours. It takes a mapping that could not be lent
// halfway through a batch to make them none.
void DeviceCells::Gather(int buffer) {
  std::vector<DeliveredItem>& items = delivery_->ItemsOf(buffer);
  if (items.size() < 2) return;
  const std::byte* next = items[0].lent;
  bool are_neighbours = true;
  bool any_lent = false;
  for (const DeliveredItem& item : items) {
    are_neighbours = are_neighbours && item.lent != nullptr && item.lent == next;
    any_lent = any_lent || item.lent != nullptr;
    next = item.lent + item.lent_bytes;
  }
  if (are_neighbours || !any_lent) return;
  for (DeliveredItem& item : items) {
    if (item.lent == nullptr) continue;
    std::memcpy(delivery_->MemoryOf(buffer) + item.offset, item.lent,
                static_cast<size_t>(item.lent_bytes));
    bytes_copied_ += item.lent_bytes;
    item.lent = nullptr;
  }
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
      Gather(at->buffer);
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
