// cudaMemcpyBatchAsync: one call, whose tables the host reads.
#include "micro/cuda_batched_copies.h"

namespace sluice {

#if CUDART_VERSION >= 13000
namespace {

class MemcpyBatch : public BatchedCopy {
 public:
  explicit MemcpyBatch(const CopyPieces& pieces) : pieces_(pieces) {}

  const char* name() const override { return "cudaMemcpyBatchAsync"; }

  cudaError_t Start(cudaStream_t stream) override {
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;  // they are those of all pieces
    return cudaMemcpyBatchAsync(pieces_.dsts.data(), pieces_.srcs.data(), pieces_.bytes.data(),
                                pieces_.bytes.size(), &attributes, &first, 1, stream);
  }

 private:
  const CopyPieces& pieces_;
};

}  // namespace

std::unique_ptr<BatchedCopy> MakeMemcpyBatch(const CopyPieces& pieces) {
  return std::make_unique<MemcpyBatch>(pieces);
}
#else
// CUDA 12.8 has it with another signature.
std::unique_ptr<BatchedCopy> MakeMemcpyBatch(const CopyPieces& /*pieces*/) { return nullptr; }
#endif

}  // namespace sluice
