// Options that set some of their fields by name. The compiler warns of no field left out.
#include "absl/time/time.h"
#include "sluice/checkpoint.h"
#include "sluice/run.h"
#include "sluice/session.h"
#include "sluice/stream.h"
#include "sluice/tensor.h"
#include "sluice/transfer.h"

sluice::SessionOptions Session() { return {.budget_buckets = 8}; }

sluice::StartOptions Start() { return {.events = true}; }

sluice::CheckpointOptions Checkpoint() { return {.connections = 8}; }

sluice::StreamOptions Stream() {
  return {.source = {.item_bytes = 8},
          .selection = {.step = 2},
          .order = {.seed = 1},
          .reads = {.retry = {.attempts_max = 2}},
          .buffers = {.count = 3}};
}

sluice::StreamOptions HedgedStream() { return {.reads = {.hedge = {.enabled = true}}}; }

sluice::StreamOptions ShortWait() { return {.timeout = absl::Seconds(1)}; }

sluice::TransferSpec Transfer() {
  return {.tensors = {{.shape = {8}, .src_dtype = sluice::DType::kF16}}};
}

sluice::TensorView View() { return {.shape = {8}, .dtype = sluice::DType::kF16}; }

sluice::CheckpointTensor Tensor() { return {{.name = "w", .dtype = sluice::DType::kF16}}; }
