// Ranges by NVTX, whose headers come with CUDA and find the profiler at run time.
#include <nvtx3/nvToolsExt.h>

#include "trace/profiler_range.h"

namespace sluice {
namespace {

nvtxDomainHandle_t Domain() {
  static const nvtxDomainHandle_t kDomain = nvtxDomainCreateA("sluice");
  return kDomain;
}

}  // namespace

uint64_t BeginProfilerRange(TraceKind kind, int64_t bytes) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = TraceKindName(kind);
  attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  attributes.payload.llValue = bytes;
  return nvtxDomainRangeStartEx(Domain(), &attributes);
}

void EndProfilerRange(uint64_t number) { nvtxDomainRangeEnd(Domain(), number); }

}  // namespace sluice
