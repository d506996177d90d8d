// Copies and sets: checked and enqueued at once, carried out when their turn comes.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "fakes/fake_cuda_call.h"
#include "fakes/fake_cuda_memory.h"
#include "fakes/fake_cuda_state.h"
#include "fakes/fake_cuda_stream.h"

namespace sluice::fake_cuda {
namespace {

struct Rows {
  std::byte* to;
  size_t to_pitch;
  const std::byte* from;
  size_t from_pitch;
  size_t width;
  size_t height;
};

size_t Extent(size_t pitch, const Rows& rows) { return (rows.height - 1) * pitch + rows.width; }

void Copy(const Rows& rows) {
  for (size_t row = 0; row < rows.height; ++row) {
    std::memcpy(rows.to + row * rows.to_pitch, rows.from + row * rows.from_pitch, rows.width);
  }
}

bool IsHost(PlaceKind kind) { return kind == PlaceKind::kPageable || kind == PlaceKind::kPinned; }

bool Fits(cudaMemcpyKind kind, const Place& to, const Place& from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return IsHost(from.kind) && IsHost(to.kind);
    case cudaMemcpyHostToDevice:
      return IsHost(from.kind) && !IsHost(to.kind);
    case cudaMemcpyDeviceToHost:
      return !IsHost(from.kind) && IsHost(to.kind);
    case cudaMemcpyDeviceToDevice:
      return !IsHost(from.kind) && !IsHost(to.kind);
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

struct CopyCall {
  const char* function;
  cudaMemcpyKind kind;
  cudaStream_t stream;
  bool waits;
};

cudaError_t EnqueueCopy(const CopyCall& call, Rows rows) {
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) return cudaErrorInvalidPitchValue;
  if (static_cast<unsigned>(call.kind) > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (rows.width == 0 || rows.height == 0) return cudaSuccess;
  auto [state, lock] = LockState();
  const std::shared_ptr<Stream> stream = FindStream(state, call.stream, call.function);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const FakeCudaRange target = {rows.to, Extent(rows.to_pitch, rows)};
  const FakeCudaRange source = {rows.from, Extent(rows.from_pitch, rows)};
  const Place to = Locate(state, target, call.function);
  const Place from = Locate(state, source, call.function);
  if (to.kind == PlaceKind::kBad || from.kind == PlaceKind::kBad) return cudaErrorInvalidValue;
  if (!Fits(call.kind, to, from)) {
    AddMisuse(std::string(call.function) + " from " + Hex(rows.from) + " to " + Hex(rows.to) +
              ": a host pointer where a device pointer belongs, or the other way round");
    return cudaErrorInvalidValue;
  }
  rows.to = to.host;
  rows.from = from.host;
  std::shared_ptr<std::vector<std::byte>> staged;
  if (from.kind == PlaceKind::kPageable && !IsHost(to.kind)) {
    // Pageable memory is read before the call returns, into memory of the runtime.
    staged = std::make_shared<std::vector<std::byte>>(rows.width * rows.height);
    Copy({staged->data(), rows.width, rows.from, rows.from_pitch, rows.width, rows.height});
    rows.from = staged->data();
    rows.from_pitch = rows.width;
  }
  const uint64_t sequence = Enqueue(
      state, stream,
      {.what = call.function, .run = [rows, staged] { Copy(rows); }, .uses = {target, source}});
  const bool waits =
      call.waits || to.kind == PlaceKind::kPageable || (IsHost(to.kind) && IsHost(from.kind));
  if (waits || staged != nullptr) CountHostWait();
  if (waits) {
    WaitUntilDone(lock, {stream, sequence});
    SeenDone(*stream, sequence);
  }
  return DeviceError(state, stream->device);
}

cudaError_t EnqueueSet(const char* function, void* pointer, int value, size_t bytes,
                       cudaStream_t handle) {
  if (bytes == 0) return cudaSuccess;
  auto [state, lock] = LockState();
  const std::shared_ptr<Stream> stream = FindStream(state, handle, function);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const FakeCudaRange range = {pointer, bytes};
  std::byte* const host = DeviceBytes(state, range, stream->device, function);
  if (host == nullptr) return cudaErrorInvalidValue;
  Enqueue(state, stream,
          {.what = function,
           .run = [host, value, bytes] { std::memset(host, value, bytes); },
           .uses = {range}});
  return DeviceError(state, stream->device);
}

Rows OneRow(void* to, const void* from, size_t bytes) {
  return {static_cast<std::byte*>(to), bytes, static_cast<const std::byte*>(from), bytes, bytes, 1};
}

}  // namespace
}  // namespace sluice::fake_cuda

namespace fake = sluice::fake_cuda;

extern "C" {

cudaError_t cudaMemcpy(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    return fake::EnqueueCopy({name, kind, nullptr, true}, fake::OneRow(dst, src, count));
  });
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    return fake::EnqueueCopy({name, kind, stream, false}, fake::OneRow(dst, src, count));
  });
}

cudaError_t cudaMemcpy2DAsync(void* dst, size_t dpitch, const void* src, size_t spitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const char* const name = __func__;
  return fake::Call(name, [&] {
    return fake::EnqueueCopy({name, kind, stream, false},
                             {static_cast<std::byte*>(dst), dpitch,
                              static_cast<const std::byte*>(src), spitch, width, height});
  });
}

cudaError_t cudaMemsetAsync(void* devPtr, int value, size_t count, cudaStream_t stream) {
  const char* const name = __func__;
  return fake::Call(name, [&] { return fake::EnqueueSet(name, devPtr, value, count, stream); });
}

}  // extern "C"
