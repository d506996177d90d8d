// The seam of storage that is written to: ranges of objects, many at once.
#ifndef SLUICE_SRC_STORAGE_SINK_H_
#define SLUICE_SRC_STORAGE_SINK_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"

namespace sluice {

// A range of an object, and the caller's number for it.
struct WriteOp {
  int object = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
  const std::byte* data = nullptr;  // stays as it is until the write has ended
  uint64_t cookie = 0;
};

struct WriteEvent {
  uint64_t cookie = 0;
  absl::Status status;  // names the object
};

// Thread: one at a time, which may change.
class Sink {
 public:
  // Waits until nothing is under way.
  virtual ~Sink() = default;

  // Writes are fastest from data that lies in its block of so many bytes as in the object's.
  virtual int64_t alignment() const = 0;
  // Takes a write, and opens its object if need be, which waits for storage. An error is that of
  // the object; there is no write then.
  virtual absl::Status Begin(const WriteOp& op) = 0;
  // Starts what was begun. An error is the system's, and ends all writes.
  virtual absl::Status Submit() = 0;
  // The next write that has ended. False: none has.
  virtual bool Next(WriteEvent* event) = 0;
  // From now on nothing is started. Writes that wait end at once, and those under way after the
  // call of the system's that they are in.
  virtual void Cancel() = 0;
  // Keeps what writes use until none is under way, also after this object's user.
  virtual void KeepUntilOver(std::shared_ptr<const void> memory) = 0;

  // Begun, and not taken.
  virtual int outstanding() const = 0;
  // Polls readable when Next may have something.
  virtual int ready_fd() const = 0;

  // Waits until all that was written is on the storage. While nothing is outstanding.
  virtual absl::Status Sync() = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_SINK_H_
