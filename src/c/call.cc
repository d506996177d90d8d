// Statuses, texts of errors, and versions.
#include "c/call.h"

#include <pthread.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "sluice/error.h"
#include "tensor/error_text.h"

namespace sluice::c {
namespace {

constexpr sluice_status kLeast = SLUICE_UNAUTHENTICATED;

static_assert(SLUICE_CANCELLED == -static_cast<int>(absl::StatusCode::kCancelled));
static_assert(SLUICE_UNKNOWN == -static_cast<int>(absl::StatusCode::kUnknown));
static_assert(SLUICE_INVALID_ARGUMENT == -static_cast<int>(absl::StatusCode::kInvalidArgument));
static_assert(SLUICE_DEADLINE_EXCEEDED == -static_cast<int>(absl::StatusCode::kDeadlineExceeded));
static_assert(SLUICE_NOT_FOUND == -static_cast<int>(absl::StatusCode::kNotFound));
static_assert(SLUICE_ALREADY_EXISTS == -static_cast<int>(absl::StatusCode::kAlreadyExists));
static_assert(SLUICE_PERMISSION_DENIED == -static_cast<int>(absl::StatusCode::kPermissionDenied));
static_assert(SLUICE_RESOURCE_EXHAUSTED == -static_cast<int>(absl::StatusCode::kResourceExhausted));
static_assert(SLUICE_FAILED_PRECONDITION ==
              -static_cast<int>(absl::StatusCode::kFailedPrecondition));
static_assert(SLUICE_ABORTED == -static_cast<int>(absl::StatusCode::kAborted));
static_assert(SLUICE_OUT_OF_RANGE == -static_cast<int>(absl::StatusCode::kOutOfRange));
static_assert(SLUICE_UNIMPLEMENTED == -static_cast<int>(absl::StatusCode::kUnimplemented));
static_assert(SLUICE_INTERNAL == -static_cast<int>(absl::StatusCode::kInternal));
static_assert(SLUICE_UNAVAILABLE == -static_cast<int>(absl::StatusCode::kUnavailable));
static_assert(SLUICE_DATA_LOSS == -static_cast<int>(absl::StatusCode::kDataLoss));
static_assert(SLUICE_UNAUTHENTICATED == -static_cast<int>(absl::StatusCode::kUnauthenticated));

// This thread's: of its last call that failed, and of a callback that is going to fail.
struct Texts {
  std::string last;
  // Fields of the error whose text is `last`.
  std::optional<std::string> ranks, tensor, epoch;
  const char* fixed = nullptr;  // in place of `last`, where there was no memory for that
  std::string callback;
};

// They lie where nothing ends them before the thread's last call. Destructors of other things of
// the thread, and handlers of exit, may still make calls. A key's destructor comes again where a
// later call has set its value again. The main thread's texts stay.
alignas(Texts) thread_local std::array<std::byte, sizeof(Texts)> t_storage;
thread_local Texts* t_texts = nullptr;

void EndTexts(void* texts) {
  static_cast<Texts*>(texts)->~Texts();
  t_texts = nullptr;
}

// None: the system has no more keys, and texts of threads that end are lost.
absl::optional<pthread_key_t> MakeKey() {
  pthread_key_t key;
  if (pthread_key_create(&key, &EndTexts) != 0) return absl::nullopt;
  return key;
}

Texts& ThreadTexts() {
  static const absl::optional<pthread_key_t> key = MakeKey();
  if (t_texts == nullptr) {
    t_texts = new (t_storage.data()) Texts();
    if (key) pthread_setspecific(*key, t_texts);
  }
  return *t_texts;
}

}  // namespace

sluice_status Report(const char* call, const absl::Status& status) noexcept {
  if (status.ok()) return SLUICE_OK;
  Texts& texts = ThreadTexts();
  try {
    const ErrorFields fields = FieldsOf(status);
    texts.ranks = texts.tensor = texts.epoch = std::nullopt;
    texts.last = absl::StrCat(call, ": ", status.message());
    texts.fixed = nullptr;
    if (!fields.ranks.empty()) texts.ranks = RanksText(fields.ranks);
    texts.tensor = fields.tensor;
    if (fields.epoch) texts.epoch = absl::StrCat(*fields.epoch);
  } catch (...) {
    texts.fixed = "out of memory, also for saying what failed";
  }
  const int code = -status.raw_code();
  return code < 0 && code >= kLeast ? code : SLUICE_UNKNOWN;
}

absl::Status Caught() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return absl::ResourceExhaustedError("out of memory");
    } catch (const std::exception& error) {
      return absl::InternalError(absl::StrCat("an exception: ", error.what()));
    } catch (...) {
      return absl::InternalError("an exception of an unknown kind");
    }
  } catch (...) {  // of making a text
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

absl::Status StatusOfCallback(absl::string_view what, sluice_status status) {
  if (status == SLUICE_OK) return absl::OkStatus();
  if (status > 0 || status < kLeast) {
    return absl::InternalError(absl::StrCat(what, " returned ", status, ", which is no status"));
  }
  const std::string& text = ThreadTexts().callback;
  return absl::Status(static_cast<absl::StatusCode>(-status),
                      absl::StrCat(what, ": ", text.empty() ? sluice_status_name(status) : text));
}

void ForgetCallbackText() noexcept { ThreadTexts().callback.clear(); }

absl::Status IsNull(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(what, " is NULL"));
}

}  // namespace sluice::c

int32_t sluice_api_version(void) { return SLUICE_API_VERSION; }

const char* sluice_version(void) { return SLUICE_VERSION_TEXT; }

const char* sluice_status_name(sluice_status status) {
  constexpr std::array<const char*, 17> kErrors = {"OK",
                                                   "CANCELLED",
                                                   "UNKNOWN",
                                                   "INVALID_ARGUMENT",
                                                   "DEADLINE_EXCEEDED",
                                                   "NOT_FOUND",
                                                   "ALREADY_EXISTS",
                                                   "PERMISSION_DENIED",
                                                   "RESOURCE_EXHAUSTED",
                                                   "FAILED_PRECONDITION",
                                                   "ABORTED",
                                                   "OUT_OF_RANGE",
                                                   "UNIMPLEMENTED",
                                                   "INTERNAL",
                                                   "UNAVAILABLE",
                                                   "DATA_LOSS",
                                                   "UNAUTHENTICATED"};
  if (status == SLUICE_PENDING) return "PENDING";
  if (status == SLUICE_END) return "END";
  if (status > 0 || status < sluice::c::kLeast) return "UNKNOWN";
  return kErrors[static_cast<size_t>(-status)];
}

const char* sluice_last_error(void) {
  const sluice::c::Texts& texts = sluice::c::ThreadTexts();
  return texts.fixed != nullptr ? texts.fixed : texts.last.c_str();
}

const char* sluice_last_error_field(const char* field) {
  const sluice::c::Texts& texts = sluice::c::ThreadTexts();
  if (texts.fixed != nullptr || field == nullptr) return nullptr;
  const absl::string_view name = field;
  const auto text = [](const std::optional<std::string>& value) {
    return value ? value->c_str() : nullptr;
  };
  if (name == "ranks") return text(texts.ranks);
  if (name == "tensor") return text(texts.tensor);
  return name == "epoch" ? text(texts.epoch) : nullptr;
}

void sluice_set_error(const char* text) {
  try {
    sluice::c::ThreadTexts().callback = text == nullptr ? "" : text;
  } catch (...) {  // it then has the name of its status
    sluice::c::ForgetCallbackText();
  }
}
