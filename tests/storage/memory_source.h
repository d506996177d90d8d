// A source over memory: the simplest there is, to be decorated in tests.
#ifndef SLUICE_TESTS_STORAGE_MEMORY_SOURCE_H_
#define SLUICE_TESTS_STORAGE_MEMORY_SOURCE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/source.h"
#include "storage/wake_set.h"

namespace sluice {

struct MemoryObject {
  std::string name;
  std::optional<std::string> content;  // none: there is no such object
};

// Reads are carried out by Poll, in order; alignment 1. While `held` none is.
class MemorySource : public Source {
 public:
  explicit MemorySource(std::vector<MemoryObject> objects);

  absl::string_view name() const override { return "memory"; }
  int64_t alignment() const override { return 1; }
  absl::Status Start(absl::Span<const ReadOp> ops) override;
  absl::StatusOr<int> Poll(absl::Span<ReadEvent> events) override;
  void Cancel(uint64_t cookie) override;
  int ready_fd() const override { return wake_->fd(); }

  void Hold(bool held);
  // The next Poll fails, and what is outstanding is lost.
  void Break() { broken_ = true; }
  // All that were ever started.
  const std::vector<ReadOp>& started() const { return started_; }

 private:
  absl::Status Carry(const ReadOp& op);

  std::unique_ptr<WakeSet> wake_;
  std::vector<MemoryObject> objects_;
  std::vector<bool> opened_;
  std::vector<ReadOp> started_;
  std::vector<ReadOp> waiting_;
  std::vector<uint64_t> cancelled_;
  bool held_ = false;
  bool broken_ = false;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_MEMORY_SOURCE_H_
