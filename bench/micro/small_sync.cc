// micro-bench small-sync: what a sync of many small tensors takes, from rows to columns.
//
// bench/python/small_sync.py does the same from Python, so that the two show what Python costs.
// Prints the median over --runs, of the slowest rank in each run. Before each run destinations are
// overwritten, after it every element is compared.
//
//   scripts/spawn.sh -n 2 build/bin/micro-bench small-sync --json small.json
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "micro/commands.h"
#include "micro/world_session.h"
#include "report/spread.h"
#include "sluice/connect.h"

namespace sluice::bench {
namespace {

struct SyncOptions {
  int tensors = 300;
  int64_t rows = 16;
  int64_t columns = 16;
  int runs = 200;
  int warmups = 20;
  std::string json;

  float ValueOf(int tensor, int64_t row, int64_t column) const {
    return static_cast<float>(tensor * rows * columns + row * columns + column);
  }
};

// A rank's tensors, source and target in turns.
class SmallTensors {
 public:
  SmallTensors(const SyncOptions& options, int rank, int size)
      : options_(options),
        rank_(rank),
        own_columns_(options.columns / size),
        elements_(options.rows * own_columns_),
        memory_(static_cast<size_t>(2 * elements_ * options.tensors)) {
    std::vector<int> ranks(static_cast<size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    const Mesh mesh = *Mesh::Create({size}, ranks);
    const std::vector<int64_t> shape = {options.rows, options.columns};
    for (int t = 0; t < options.tensors; ++t) {
      for (int64_t i = 0; i < elements_; ++i) {
        const int64_t row = rank * (options.rows / size) + i / options.columns;
        At(t, 0)[i] = options.ValueOf(t, row, i % options.columns);
      }
      for (const int dim : {0, 1}) {
        const Layout layout = {mesh, {Placement::Shard(dim)}};
        (dim == 0 ? spec.sources : spec.targets)
            .push_back({{absl::StrCat("w", t), shape, DType::kF32, layout,
                         DenseView(At(t, dim), *LocalShape(layout, shape, rank), DType::kF32)}});
      }
    }
  }

  void Spoil() {
    for (int t = 0; t < options_.tensors; ++t) std::fill_n(At(t, 1), elements_, -1.0F);
  }

  absl::Status Check() {
    int64_t wrong = 0;
    for (int t = 0; t < options_.tensors; ++t) {
      for (int64_t i = 0; i < elements_; ++i) {
        const float due =
            options_.ValueOf(t, i / own_columns_, rank_ * own_columns_ + i % own_columns_);
        wrong += At(t, 1)[i] != due ? 1 : 0;
      }
    }
    if (wrong == 0) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("rank ", rank_, " has ", wrong, " wrong elements"));
  }

  ConnectSpec spec;

 private:
  // `side`: 0 the source, 1 the target.
  float* At(int tensor, int side) { return memory_.data() + (2 * tensor + side) * elements_; }

  const SyncOptions& options_;
  const int rank_;
  const int64_t own_columns_;
  const int64_t elements_;  // of each side of a tensor
  std::vector<float> memory_;
};

absl::Status MeasureSync(const SyncOptions& options) {
  auto joined = WorldSession::Join();
  if (!joined.ok()) return joined.status();
  WorldSession* const world = joined->get();
  const int size = world->size();
  if (options.rows % size != 0 || options.columns % size != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rows and --columns must be multiples of ", size));
  }
  SmallTensors tensors(options, world->rank(), size);
  auto connection = Connect(world->session(), tensors.spec);
  if (!connection.ok()) return connection.status();
  std::vector<double> syncs, starts;  // microseconds
  for (int run = -options.warmups; run < options.runs; ++run) {
    tensors.Spoil();
    absl::Status status = world->Barrier();
    if (!status.ok()) return status;
    const int64_t begin = MonotonicNs();
    auto started = (*connection)->Start();
    const int64_t middle = MonotonicNs();
    if (!started.ok()) return started.status();
    status = started->Wait();
    const int64_t end = MonotonicNs();
    if (status.ok()) status = tensors.Check();
    if (!status.ok()) return status;
    if (run < 0) continue;
    syncs.push_back(static_cast<double>(end - begin) / 1e3);
    starts.push_back(static_cast<double>(middle - begin) / 1e3);
  }
  for (std::vector<double>* const times : {&syncs, &starts}) {
    auto slowest = world->Largest(*times);
    if (!slowest.ok()) return slowest.status();
    *times = *std::move(slowest);
  }
  const absl::Status dropped = (*connection)->Drop();
  if (!dropped.ok()) return dropped;
  return world->Finish(
      absl::StrFormat("%d ranks, %d tensors: %.1f us, of which Start takes %.1f us\n", size,
                      options.tensors, Median(syncs), Median(starts)),
      nlohmann::ordered_json(
          {{"ranks", size}, {"tensors", options.tensors}, {"sync_us", syncs}, {"start_us", starts}})
              .dump() +
          "\n",
      options.json);
}

}  // namespace

Work AddSmallSync(CLI::App* app) {
  const auto options = std::make_shared<SyncOptions>();
  app->add_option("--tensors", options->tensors)->check(CLI::Range(1, 1 << 20));
  app->add_option("--rows", options->rows)->check(CLI::Range(1, 4096));
  app->add_option("--columns", options->columns)->check(CLI::Range(1, 4096));
  app->add_option("--runs", options->runs)->check(CLI::Range(1, 100000));
  app->add_option("--warmups", options->warmups)->check(CLI::Range(0, 1000));
  app->add_option("--json", options->json, "what rank 0 writes");
  return [options] { return MeasureSync(*options); };
}

}  // namespace sluice::bench
