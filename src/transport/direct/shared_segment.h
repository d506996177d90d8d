// Memory that the processes of a node share, with no name in any file system.
#ifndef SLUICE_SRC_TRANSPORT_DIRECT_SHARED_SEGMENT_H_
#define SLUICE_SRC_TRANSPORT_DIRECT_SHARED_SEGMENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace sluice {

// How another process finds a segment while its maker keeps it open: by the maker's descriptor.
struct SharedSegmentName {
  int32_t pid = -1;
  int32_t fd = -1;
  uint64_t bytes = 0;
  uint64_t device = 0;  // with `inode`: that the descriptor is still of this segment
  uint64_t inode = 0;
};

// A mapping of a segment, which keeps its size. Pages come with first use, or Reserve; they are
// given back when the last process has unmapped it, however it ends. In one process, all have the
// same mapping. Thread: any.
class SharedSegment {
 public:
  // Zero bytes, of mode 0600. ResourceExhausted says how many cannot be had.
  static absl::StatusOr<std::shared_ptr<SharedSegment>> Create(size_t bytes);
  // FailedPrecondition if this process may not reach the maker's descriptors, or the segment is
  // not open there.
  static absl::StatusOr<std::shared_ptr<SharedSegment>> Attach(const SharedSegmentName& name);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // Takes all pages now. If memory runs out later, it fails for other users. ResourceExhausted
  // where the system says that it has too few pages. Called by the maker.
  absl::Status Reserve();

  std::byte* data() const { return data_; }
  size_t bytes() const { return name_.bytes; }
  const SharedSegmentName& name() const { return name_; }

  // Nobody can attach any more. By its maker, once.
  void CloseDescriptor();

 private:
  SharedSegment(std::byte* data, const SharedSegmentName& name) : data_(data), name_(name) {}
  static absl::StatusOr<std::shared_ptr<SharedSegment>> Map(int fd, const SharedSegmentName& name);

  std::byte* const data_;
  SharedSegmentName name_;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_DIRECT_SHARED_SEGMENT_H_
