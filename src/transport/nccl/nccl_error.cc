// The one place that turns NCCL's results into Status.
#include "transport/nccl/nccl_error.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

absl::string_view NameOf(ncclResult_t result) {
  switch (result) {
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    default:
      return "ncclResult_t";
  }
}

absl::StatusCode CodeOf(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
      return absl::StatusCode::kUnavailable;
    case ncclInvalidUsage:
      return absl::StatusCode::kFailedPrecondition;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::Status NcclError(ncclResult_t result, absl::string_view call, ncclComm_t comm,
                       const ErrorText& what) {
  const char* last = ncclGetLastError(comm);
  const std::string detail = last == nullptr || *last == '\0' ? "" : absl::StrCat(": ", last);
  return MakeError(CodeOf(result), call, " failed: ", ncclGetErrorString(result), " (",
                   NameOf(result), " ", static_cast<int>(result), ")", detail, "; ", what);
}

}  // namespace sluice
