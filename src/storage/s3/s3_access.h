// The way into a store: its endpoint and region, and keys that are asked for anew in time.
#ifndef SLUICE_SRC_STORAGE_S3_S3_ACCESS_H_
#define SLUICE_SRC_STORAGE_S3_S3_ACCESS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "sluice/s3.h"
#include "storage/http/http_signer.h"
#include "storage/s3/s3_profile.h"

namespace sluice {

class S3Access : public HttpSigner {
 public:
  virtual const std::string& endpoint() const = 0;  // empty: AWS
  virtual const std::string& region() const = 0;
};

// Looks for what the options do not give, as S3Options says; asks no one for keys yet.
// InvalidArgument names an endpoint or a region that is none. FailedPrecondition: half a pair of
// keys, or a profile whose keys come from where they are not looked for.
absl::StatusOr<std::shared_ptr<S3Access>> FindS3Access(
    const S3Options& options, const S3Environment& environment = ProcessVariable);

// When keys that were got `now` are asked for anew: a minute before their end, or sooner if they
// end soon.
absl::Time RenewalOf(absl::Time now, absl::Time expires);

}  // namespace sluice

#endif  // SLUICE_SRC_STORAGE_S3_S3_ACCESS_H_
