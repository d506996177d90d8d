// Moves the memory of views elsewhere, and points the views there.
#ifndef SLUICE_SRC_SESSION_BASE_MOVED_MEMORY_H_
#define SLUICE_SRC_SESSION_BASE_MOVED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "session/base/views.h"
#include "sluice/tensor.h"

namespace sluice {

// Views that overlap move together, and overlap as before. Bytes between those of a view move with
// them.
class MovedMemory {
 public:
  // `views`, and those of their boxes, must stay as they are until MoveTo. InvalidArgument names
  // the view that is wrong, or is not in host memory.
  static absl::StatusOr<MovedMemory> Make(absl::Span<TensorView> views);

  // The memory that it takes, which begins at a multiple of 64.
  int64_t bytes() const { return bytes_; }

  // Copies everything, then changes the views.
  void MoveTo(std::byte* memory) const;

 private:
  // Each byte has its distance from a multiple of 64 in both places.
  struct Range {
    AddressRange at;
    const std::byte* data = nullptr;
    int64_t place = 0;
  };
  struct Moved {
    AddressRange at;
    const std::byte* data = nullptr;
    TensorView* view = nullptr;
  };

  absl::Status Add(TensorView* view, const std::string& name);

  std::vector<Moved> views_;
  std::vector<Range> ranges_;  // ascending, apart
  int64_t bytes_ = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_MOVED_MEMORY_H_
