// Ranges that profilers of GPUs show beside their own: stages of buckets, by NVTX.
//
// Costs a few nanoseconds while no profiler is attached, and nothing where NVTX is not built in.
#ifndef SLUICE_SRC_TRACE_PROFILER_RANGE_H_
#define SLUICE_SRC_TRACE_PROFILER_RANGE_H_

#include <cstdint>

#include "trace/trace_event.h"

namespace sluice {

// Begins a range named after the kind, in the domain "sluice", with the bytes as its payload; may
// overlap others. Returns its number, for EndProfilerRange. Thread: any.
uint64_t BeginProfilerRange(TraceKind kind, int64_t bytes);
void EndProfilerRange(uint64_t number);

}  // namespace sluice

#endif  // SLUICE_SRC_TRACE_PROFILER_RANGE_H_
