// Reads one page of the listing of a store.
#ifndef SLUICE_SRC_STORAGE_OPEN_STORE_PAGE_H_
#define SLUICE_SRC_STORAGE_OPEN_STORE_PAGE_H_

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "storage/open/open_source.h"
#include "storage/open/source_address.h"
#include "storage/s3/s3_listing.h"

namespace sluice {

// One attempt to add the next page of what is right below `address`, which is of S3; waits. Limits
// and errors are those of ReadWholeObject and AddS3Page. Any thread.
absl::Status ReadStorePage(const SourceAddress& address, OpenOptions options, int64_t stall_ns,
                           const std::atomic<bool>& stop, S3Listing* listing);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_OPEN_STORE_PAGE_H_
