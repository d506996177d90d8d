// Collects the operations of a bucket's stage.
#ifndef SLUICE_SRC_SESSION_BASE_STAGE_OPERATIONS_H_
#define SLUICE_SRC_SESSION_BASE_STAGE_OPERATIONS_H_

#include <cstdint>
#include <vector>

#include "session/base/copy_queue.h"
#include "sluice/transport.h"

namespace sluice {

// Given by the carrier (session/base/carrier.h), for one call of whoever adds.
struct StageOperations {
  uint64_t cookie = 0;          // of the messages; the copies have it already
  int* pending = nullptr;       // operations of the bucket under way; who adds messages counts them
  CopyQueue* copies = nullptr;  // which counts its batches itself
  std::vector<TransportOp>* messages = nullptr;
};

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_BASE_STAGE_OPERATIONS_H_
