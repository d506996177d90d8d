// A GET of the bucket, whose query says which page.
#include "storage/open/store_page.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "storage/http/http_fetch.h"
#include "storage/s3/s3_address.h"
#include "tensor/error_text.h"

namespace sluice {

absl::Status ReadStorePage(const SourceAddress& address, OpenOptions options, int64_t stall_ns,
                           const std::atomic<bool>& stop, S3Listing* listing) {
  constexpr int64_t kPageBytesMax = 16 << 20;
  SLUICE_RETURN_IF_ERROR(FindAccess(address, &options));
  SLUICE_ASSIGN_OR_RETURN(ServerPlace server, ServerOf(address, options));
  SLUICE_ASSIGN_OR_RETURN(const S3Address place, ParseS3Address(address.place));
  server.http.stall_timeout_ns = stall_ns;
  const S3Access& access = *options.s3_access;
  const HttpFetch what = {S3BucketUrl(place, access.endpoint(), access.region()),
                          S3ListQuery(place, listing->token),
                          absl::StrCat("the listing of ", address.place)};
  SLUICE_ASSIGN_OR_RETURN(const std::string page,
                          FetchHttpObject(what, kPageBytesMax, server.http, &stop));
  return Annotate(AddS3Page(page, place.prefix, listing), what.shown);
}

}  // namespace sluice
