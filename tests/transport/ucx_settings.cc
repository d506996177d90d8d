// UCX as its environment chooses.
#include "transport/ucx_settings.h"

#include <cstdlib>

#include "oracle/sampled.h"
#include "transport/ucx/ucx_worker.h"

namespace sluice {
namespace {

void Set(const char* name, const std::string& value) {
  if (value.empty()) {
    unsetenv(name);
  } else {
    setenv(name, value.c_str(), 1);
  }
}

}  // namespace

void ApplyUcxSettings(const UcxSettings& settings) {
  Set("UCX_TLS", settings.tls);
  Set("UCX_RNDV_THRESH", settings.rendezvous);
  // UCX puts hooks of its own into memory calls of the system. The thread sanitizer does not
  // survive one of them, at the end of a thread. UCX reads this when it is loaded.
  if (oracle::kSanitized) Set("UCX_MEM_EVENTS", "n");
}

std::string WhyNoUcx() {
  const auto worker = UcxWorker::Create(UcxTcp::kIfNamed);
  return worker.ok() ? "" : std::string(worker.status().message());
}

}  // namespace sluice
