// The one place that turns MPI codes into Status.
#include "transport/mpi/mpi_error.h"

#include <mpi.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

#if defined(MPI_ERR_PROC_FAILED)
constexpr int kEndOfRank = MPI_ERR_PROC_FAILED;
#else
constexpr int kEndOfRank = -1;  // no class of errors
#endif

int ErrorClass(int code) {
  int error_class = MPI_ERR_UNKNOWN;
  if (MPI_Error_class(code, &error_class) != MPI_SUCCESS) return MPI_ERR_UNKNOWN;
  return error_class;
}

std::string TextOf(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return absl::StrCat("error ", code);
  return std::string(text, static_cast<size_t>(length));
}

absl::StatusCode StatusCodeOf(int error_class) {
  if (error_class == MPI_ERR_TRUNCATE) return absl::StatusCode::kDataLoss;
  if (error_class == MPI_ERR_NO_MEM) return absl::StatusCode::kResourceExhausted;
  if (error_class == kEndOfRank) return absl::StatusCode::kUnavailable;
  return absl::StatusCode::kInternal;
}

}  // namespace

absl::Status MpiError(int code, absl::string_view call, const ErrorText& what) {
  return MakeError(StatusCodeOf(ErrorClass(code)), call, " failed: ", TextOf(code), "; ", what);
}

bool IsEndOfRank(int code) { return ErrorClass(code) == kEndOfRank; }

bool IsErrorInStatus(int code) { return ErrorClass(code) == MPI_ERR_IN_STATUS; }

}  // namespace sluice
