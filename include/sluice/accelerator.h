// Memory beside the host's, and transports that reach it: what a session is told to use them with.
//
// `sluice/cuda.h` and `sluice/nccl.h` make them; a session made without knows host memory and its
// fabric's messages only. Nothing here includes a vendor's header.
#ifndef SLUICE_ACCELERATOR_H_
#define SLUICE_ACCELERATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sluice/tensor.h"

namespace sluice {

class Device;     // src/device/device.h
class Fabric;     // sluice/fabric.h
class Transport;  // sluice/transport.h

// A queue of work on a device, as its runtime knows it: a cudaStream_t. Null is a stream, too: the
// runtime's default one.
struct StreamHandle {
  void* value = nullptr;
};

// One allocation of a device's memory.
struct MemoryRange {
  const std::byte* begin = nullptr;
  size_t bytes = 0;
  uint64_t id = 0;  // no other allocation of this process has or had it

  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

// One device of this process. May be shared by sessions, and must outlive them. Thread: any.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  // For messages and tables: "cuda:0 (NVIDIA H100 80GB HBM3)".
  virtual std::string description() const = 0;
  // As in TensorView::device and device_ordinal of its memory.
  virtual DeviceKind kind() const = 0;
  virtual int32_t ordinal() const = 0;

  // A stream of its own to copy on. ResourceExhausted, or what the runtime says.
  virtual absl::StatusOr<std::unique_ptr<Device>> OpenDevice() = 0;

  // OK if `data` is memory of the kind that it is said to be, on this device where that matters.
  // InvalidArgument says what it is instead.
  virtual absl::Status CheckMemory(const void* data, DeviceKind kind) const = 0;
  // OK if `stream` is this device's. FailedPrecondition while it is captured into a graph.
  virtual absl::Status CheckStream(StreamHandle stream) const = 0;
  // The allocation of device memory with the byte at `data`: memory that was freed, and had again
  // at the same address, is another one. An error if there is none, or if nothing tells.
  virtual absl::StatusOr<MemoryRange> FindMemory(const void* /*data*/) const {
    return absl::UnimplementedError("this device does not tell allocations apart");
  }

 protected:
  Accelerator() = default;
  Accelerator(const Accelerator&) = default;
  Accelerator& operator=(const Accelerator&) = default;
};

// A way to carry buckets of transfers between ranks, beside the fabric's messages.
class TransportMaker {
 public:
  virtual ~TransportMaker() = default;

  // "nccl", "cuda_ipc": for messages; equal on all ranks.
  virtual std::string name() const = 0;

  // Collective over the fabric, before anything else is opened on it; waits for the other ranks,
  // at most as long as the fabric does. `device` is the session's, of the accelerator that this was
  // made for; both must outlive the transport. FailedPrecondition, on all ranks, where these ranks
  // cannot be connected so, with the reason.
  virtual absl::StatusOr<std::unique_ptr<Transport>> Open(Fabric* fabric, Device* device) = 0;

 protected:
  TransportMaker() = default;
  TransportMaker(const TransportMaker&) = default;
  TransportMaker& operator=(const TransportMaker&) = default;
};

}  // namespace sluice

#endif  // SLUICE_ACCELERATOR_H_
