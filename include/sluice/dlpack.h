// Leases as DLPack tensors, for frameworks that take those: torch.from_dlpack, jax.dlpack.
//
// DLPack's own header (https://dmlc.github.io/dlpack/latest/c_api.html) is needed to look inside.
#ifndef SLUICE_DLPACK_H_
#define SLUICE_DLPACK_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"

struct DLManagedTensor;

namespace sluice {

// Takes over the lease, which must not be the end: the tensor's deleter, to be called once by the
// thread that calls Next, drops it. `item`: the tensor of that item, or of the whole batch where it
// is -1. InvalidArgument if there is no such item, or the batch's items are of several sizes; the
// lease is kept then.
//
// The consumer's streams must have ended their work when the deleter is called, as DLPack has it;
// with StreamBuffers::await_in_stream they come after Lease::Await first.
absl::StatusOr<DLManagedTensor*> ToDLPack(Lease* lease, int64_t item = -1);

// A tensor of the view's memory, which is dense. It refers to `owner` until its deleter is called,
// once, on any thread.
DLManagedTensor* ToDLPack(const TensorView& view, std::shared_ptr<void> owner);

}  // namespace sluice

#endif  // SLUICE_DLPACK_H_
