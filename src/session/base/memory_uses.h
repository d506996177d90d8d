// The memory that a run has been given, by address: so that more of it is checked one view at a
// time.
#ifndef SLUICE_SRC_SESSION_BASE_MEMORY_USES_H_
#define SLUICE_SRC_SESSION_BASE_MEMORY_USES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "absl/types/optional.h"
#include "session/base/views.h"

namespace sluice {

// Holds no views, only their places: the owner has them. Thread: one.
class MemoryUses {
 public:
  // The owner's view of a use; null once its memory is free.
  using ViewOf = std::function<const BoundView*(const ViewUse&)>;

  void Clear();

  // Views without elements use no memory.
  void Add(const ViewUse& use, const BoundView& view);

  // A use that has a byte in common with `view`; nothing if there is none. Forgets those that it
  // meets whose memory is free. As fast as views are of like lengths.
  absl::optional<ViewUse> FindOverlap(const BoundView& view, const ViewOf& view_of);

 private:
  struct UsedRange {
    uintptr_t end = 0;
    ViewUse use;
  };
  std::multimap<uintptr_t, UsedRange> by_begin_;
  uintptr_t longest_ = 0;  // bytes from a begin to its end
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_MEMORY_USES_H_
