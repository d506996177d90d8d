// Small control records to ranks that can be reached without a connection.
#ifndef SLUICE_SRC_TRANSPORT_NEAR_RECORDS_H_
#define SLUICE_SRC_TRANSPORT_NEAR_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace sluice {

// One rank's end. Records of one kind come in the order in which their sender sent them. Nothing
// waits. Progress happens inside calls only. Thread: one at a time.
class NearRecords {
 public:
  static constexpr int kKinds = 2;
  // The most bytes of one record. All records of one kind that the other rank has not taken have as
  // much room, and there are at most so many.
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  static constexpr size_t kMaxRecords = size_t{1} << 16;

  virtual ~NearRecords() = default;

  // Whether records to `rank` can go this way. The same as long as this object lives. The other
  // direction may differ.
  virtual bool Reaches(int rank) const = 0;

  // To a rank that is reached. Copies `record`. ResourceExhausted: records of this kind that `dst`
  // has not taken leave no room.
  virtual absl::Status Send(int dst, int kind, absl::Span<const std::byte> record) = 0;
  // The next record of `kind` that has come here: true, with its sender.
  virtual bool Poll(int kind, int* src, std::vector<std::byte>* record) = 0;
  virtual bool HasArrived(int kind) = 0;  // whether there is one

  // How many records of `kind` that were sent to `dst` it has not taken yet.
  virtual int Untaken(int dst, int kind) = 0;
  // Whether what was sent to `dst` before Mark gave `mark` comes there although this rank calls
  // nothing any more.
  virtual uint64_t Mark(int dst) const = 0;
  virtual bool IsSent(int dst, uint64_t mark) = 0;

  // DataLoss names a rank whose end makes no sense. Nothing comes from there any more, and nothing
  // goes there.
  virtual absl::Status Check() const = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_NEAR_RECORDS_H_
