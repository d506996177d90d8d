// The smallest piece that is large enough.
#include "sync/shelf.h"

#include <cstring>
#include <utility>

namespace sluice::bench {

MappedMemory Shelf::Take(size_t bytes) {
  size_t best = memory_.size();
  for (size_t i = 0; i < memory_.size(); ++i) {
    const size_t has = memory_[i].get_deleter().bytes;
    if (has < bytes || has / 2 > bytes) continue;
    if (best == memory_.size() || has < memory_[best].get_deleter().bytes) best = i;
  }
  if (best < memory_.size()) {
    MappedMemory taken = std::move(memory_[best]);
    memory_.erase(memory_.begin() + static_cast<std::ptrdiff_t>(best));
    return taken;
  }
  // What does not fit any more would be kept beside what does.
  memory_.clear();
  return MapMemory(bytes);
}

void Shelf::Put(MappedMemory memory) {
  if (memory == nullptr) return;
  memory_.push_back(std::move(memory));
  if (memory_.size() > kMost) memory_.erase(memory_.begin());
}

void Shelf::Stock(int pieces, size_t bytes) {
  for (int i = 0; i < pieces; ++i) {
    MappedMemory memory = MapMemory(bytes);
    if (memory == nullptr) return;
    std::memset(memory.get(), 0, bytes);
    Put(std::move(memory));
  }
}

}  // namespace sluice::bench
