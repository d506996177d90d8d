// Finding and loading libucp.
#include "transport/ucx/ucx_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "tensor/error_text.h"

namespace sluice {
namespace {

constexpr char kSystemUcx[] = "libucp.so.0";
constexpr char kUcxVariable[] = "SLUICE_UCX_LIBRARY";
constexpr unsigned kUcxMajor = 1;
constexpr unsigned kUcxMinorMin = 13;

absl::Status CannotLoad(const std::string& file, absl::string_view why) {
  return absl::UnavailableError(absl::StrCat("UCX cannot be loaded from ", file, ": ", why));
}

template <typename Function>
bool FindFunction(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
  return *function != nullptr;
}

// UCX writes what goes wrong to the standard output, where results are. It is in the statuses too.
void SilenceUcx(void* handle) {
  if (std::getenv("UCX_LOG_LEVEL") != nullptr) return;
  ucs_status_t (*set)(const char* name, const char* value) = nullptr;
  if (FindFunction(handle, "ucs_global_opts_set_value", &set)) set("LOG_LEVEL", "fatal");
}

absl::StatusOr<std::unique_ptr<UcxLibrary>> LoadNow(const std::string& file) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return CannotLoad(file, why != nullptr ? why : "the system does not say why");
  }
  auto library = std::make_unique<UcxLibrary>();
#define SLUICE_UCX_FIND(name)                                            \
  if (!FindFunction(handle, #name, &library->name)) {                    \
    return CannotLoad(file, absl::StrCat("it has no function ", #name)); \
  }
  SLUICE_UCX_FUNCTIONS(SLUICE_UCX_FIND)
#undef SLUICE_UCX_FIND
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  library->ucp_get_version(&major, &minor, &release);
  if (major != kUcxMajor || minor < kUcxMinorMin) {
    return CannotLoad(file, absl::StrCat("it is version ", major, ".", minor, ".", release,
                                         ", and 1.13 or a later 1.x is needed"));
  }
  SilenceUcx(handle);
  return library;
}

}  // namespace

absl::StatusOr<const UcxLibrary*> UcxLibrary::Get() {
  const char* const chosen = std::getenv(kUcxVariable);
  return Load(chosen != nullptr && *chosen != '\0' ? chosen : kSystemUcx);
}

absl::StatusOr<const UcxLibrary*> UcxLibrary::Load(const std::string& file) {
  static auto* const mutex = new std::mutex;
  static auto* const loaded = new std::map<std::string, std::unique_ptr<UcxLibrary>>;
  const std::lock_guard<std::mutex> lock(*mutex);
  std::unique_ptr<UcxLibrary>& known = (*loaded)[file];
  if (known == nullptr) {
    SLUICE_ASSIGN_OR_RETURN(known, LoadNow(file));
  }
  return known.get();
}

std::string UcxLibrary::version() const {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  return absl::StrCat(major, ".", minor, ".", release);
}

absl::Status UcxLibrary::Error(ucs_status_t status, absl::string_view what) const {
  const std::string text = absl::StrCat(what, ": UCX says: ", ucs_status_string(status));
  switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_EXCEEDS_LIMIT:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace sluice
