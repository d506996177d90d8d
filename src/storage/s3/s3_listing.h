// Pages of a store's listing.
#ifndef SLUICE_SRC_STORAGE_S3_S3_LISTING_H_
#define SLUICE_SRC_STORAGE_S3_S3_LISTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace sluice {

struct S3Object {
  std::string name;  // behind the prefix
  int64_t bytes = 0;
};

struct S3Listing {
  std::vector<S3Object> objects;
  int pages = 0;
  std::string token;  // of the next page
  bool is_whole = false;
};

// Adds the objects of a page, an answer to S3ListQuery: those right below `prefix`. DataLoss for a
// page that makes no sense; ResourceExhausted where there is no end of pages.
absl::Status AddS3Page(absl::string_view page, absl::string_view prefix, S3Listing* listing);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_LISTING_H_
