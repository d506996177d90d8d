// Fuzz target: whatever a store lists or complains of, it is taken or refused with a short text.
#include "absl/strings/match.h"
#include "fuzz/fuzz_bytes.h"
#include "storage/s3/s3_error.h"
#include "storage/s3/s3_listing.h"
#include "storage/s3/s3_profile.h"

SLUICE_FUZZ_TARGET(s3_answer) {
  const absl::string_view text = sluice::TextOf(data, size);
  sluice::S3Listing listing;
  if (const absl::Status page = sluice::AddS3Page(text, "a/", &listing); !page.ok()) {
    sluice::CheckError(page);
  } else {
    SLUICE_CHECK(listing.is_whole != !listing.token.empty(), "a listing has neither end nor token");
  }
  for (const sluice::S3Object& object : listing.objects) {
    SLUICE_CHECK(object.bytes >= 0 && !object.name.empty(), "an object makes no sense");
    SLUICE_CHECK(!absl::StrContains(object.name, '/'), "an object of a folder was taken");
  }
  sluice::HttpResponse response;
  response.code = 403;
  sluice::CheckError(sluice::ExplainS3Error({response, text, "r-1", "no keys"},
                                            absl::PermissionDeniedError("bytes 0 to 9 of a.bin")));
  sluice::S3ProfileFields fields;
  sluice::AddS3Section(text, "default", &fields);
  return 0;
}
