// small_sync_bench: what a sync of many small tensors takes, from rows to columns.
//
// bench/python/small_sync.py does the same from Python, so that the two show what Python costs.
// Prints the median over --runs, of the slowest rank in each run. Before each run destinations are
// overwritten, after it every element is compared.
//
//   scripts/spawn.sh -n 2 build/bin/small_sync_bench --json small.json
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "job/fabric_ranks.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "sluice/world.h"

namespace {

using sluice::ConnectSpec;
using sluice::DType;
using sluice::Layout;
using sluice::Mesh;
using sluice::Placement;
using sluice::bench::Ranks;

constexpr absl::Duration kTimeout = absl::Minutes(1);

struct Options {
  int tensors = 300;
  int64_t rows = 16;
  int64_t columns = 16;
  int runs = 200;
  int warmups = 20;
  std::string json;
};

// Of one rank; microseconds of each run.
struct Times {
  std::vector<double> syncs, starts;
};

bool Fails(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "small_sync_bench: %s\n", status.ToString().c_str());
  return !status.ok();
}

absl::Status NoProgress() { return absl::OkStatus(); }

// Memory of this rank, and what it gives and takes.
struct Job {
  ConnectSpec spec;
  std::vector<float> memory;
  int64_t source_elements = 0;  // of each tensor here
};

float ValueOf(int tensor, int64_t row, int64_t column, const Options& options) {
  return static_cast<float>(tensor * options.rows * options.columns + row * options.columns +
                            column);
}

void MakeJob(const Options& options, int rank, int size, Job* job) {
  std::vector<int> ranks(static_cast<size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const Mesh mesh = *Mesh::Create({size}, ranks);
  const std::vector<int64_t> shape = {options.rows, options.columns};
  const int64_t elements = options.rows * options.columns / size;
  job->source_elements = elements;
  job->memory.resize(static_cast<size_t>(2 * elements * options.tensors));
  for (int t = 0; t < options.tensors; ++t) {
    float* source = job->memory.data() + 2 * elements * t;
    for (int64_t i = 0; i < elements; ++i) {
      const int64_t row = rank * (options.rows / size) + i / options.columns;
      source[i] = ValueOf(t, row, i % options.columns, options);
    }
    for (const bool is_source : {true, false}) {
      const Layout layout = {mesh, {Placement::Shard(is_source ? 0 : 1)}};
      const std::vector<int64_t> local = *sluice::LocalShape(layout, shape, rank);
      float* data = is_source ? source : source + elements;
      (is_source ? job->spec.sources : job->spec.targets)
          .push_back({absl::StrCat("w", t), shape, DType::kF32, layout,
                      sluice::DenseView(data, local, DType::kF32), absl::nullopt});
    }
  }
}

void Spoil(const Options& options, Job* job) {
  for (int t = 0; t < options.tensors; ++t) {
    std::fill_n(job->memory.data() + (2 * t + 1) * job->source_elements, job->source_elements,
                -1.0f);
  }
}

// Elements that are not what this rank has to get.
int64_t CountWrong(const Options& options, int rank, int size, const Job& job) {
  const int64_t columns = options.columns / size;
  int64_t wrong = 0;
  for (int t = 0; t < options.tensors; ++t) {
    const float* target = job.memory.data() + (2 * t + 1) * job.source_elements;
    for (int64_t i = 0; i < job.source_elements; ++i) {
      wrong += target[i] != ValueOf(t, i / columns, rank * columns + i % columns, options) ? 1 : 0;
    }
  }
  return wrong;
}

absl::Status Run(const Options& options, Ranks* ranks, sluice::Connection* connection, Job* job,
                 Times* times) {
  for (int run = -options.warmups; run < options.runs; ++run) {
    Spoil(options, job);
    absl::Status status = ranks->Barrier(kTimeout, NoProgress);
    if (!status.ok()) return status;
    const int64_t begin = absl::GetCurrentTimeNanos();
    auto started = connection->Start();
    const int64_t middle = absl::GetCurrentTimeNanos();
    if (!started.ok()) return started.status();
    status = started->Wait();
    if (!status.ok()) return status;
    const int64_t end = absl::GetCurrentTimeNanos();
    const int64_t wrong = CountWrong(options, ranks->rank(), ranks->size(), *job);
    if (wrong != 0) {
      return absl::DataLossError(
          absl::StrCat("rank ", ranks->rank(), " has ", wrong, " wrong elements"));
    }
    if (run < 0) continue;
    times->syncs.push_back(static_cast<double>(end - begin) / 1e3);
    times->starts.push_back(static_cast<double>(middle - begin) / 1e3);
  }
  return absl::OkStatus();
}

// Of each run, the slowest rank's.
absl::StatusOr<std::vector<double>> Slowest(Ranks* ranks, const std::vector<double>& own) {
  const std::string record(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(double));
  const auto all = ranks->AllGather(record, kTimeout, NoProgress);
  if (!all.ok()) return all.status();
  std::vector<double> slowest(own.size(), 0);
  for (const std::string& each : *all) {
    for (size_t i = 0; i < own.size(); ++i) {
      double other = 0;
      each.copy(reinterpret_cast<char*>(&other), sizeof(other), i * sizeof(other));
      slowest[i] = std::max(slowest[i], other);
    }
  }
  return slowest;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

bool Report(const Options& options, int size, const Times& times) {
  std::printf("%d ranks, %d tensors: %.1f us, of which Start takes %.1f us\n", size,
              options.tensors, Median(times.syncs), Median(times.starts));
  if (options.json.empty()) return true;
  std::ofstream file(options.json);
  file << "{\"ranks\": " << size << ", \"tensors\": " << options.tensors << ", \"sync_us\": ["
       << absl::StrJoin(times.syncs, ", ") << "], \"start_us\": ["
       << absl::StrJoin(times.starts, ", ") << "]}\n";
  file.close();
  if (!file) std::fprintf(stderr, "small_sync_bench: cannot write %s\n", options.json.c_str());
  return static_cast<bool>(file);
}

int Measure(const Options& options) {
  const absl::StatusOr<sluice::WorldOptions> where = sluice::WorldOptionsFromEnvironment();
  if (Fails(where.status())) return 1;
  const auto world = sluice::World::Join(*where);
  if (Fails(world.status())) return 1;
  auto beside = (*world)->MakeFabric();  // for what is no part of the session
  if (Fails(beside.status())) return 1;
  auto ranks = sluice::bench::FabricRanks::Create(*std::move(beside), kTimeout);
  if (Fails(ranks.status())) return 1;
  auto fabric = (*world)->MakeFabric();
  if (Fails(fabric.status())) return 1;
  const int rank = (*fabric)->rank(), size = (*fabric)->size();
  if (options.rows % size != 0 || options.columns % size != 0) {
    std::fprintf(stderr, "small_sync_bench: --rows and --columns must be multiples of %d\n", size);
    return 1;
  }
  const auto session = sluice::Session::Create(*std::move(fabric), {});
  if (Fails(session.status())) return 1;
  Job job;
  MakeJob(options, rank, size, &job);
  auto connection = sluice::Connect(session->get(), job.spec);
  if (Fails(connection.status())) return 1;
  Times own, slowest;
  if (Fails(Run(options, ranks->get(), connection->get(), &job, &own))) return 1;
  for (auto [from, to] :
       {std::pair(&own.syncs, &slowest.syncs), std::pair(&own.starts, &slowest.starts)}) {
    auto found = Slowest(ranks->get(), *from);
    if (Fails(found.status())) return 1;
    *to = *std::move(found);
  }
  (*ranks)->Part(kTimeout);
  ranks->reset();  // it reports processes that end, so none does before all have come here
  if (Fails((*connection)->Drop()) || Fails((*session)->Close())) return 1;
  return rank != 0 || Report(options, size, slowest) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Measures syncs of many small tensors on the ranks of a world.");
  app.add_option("--tensors", options.tensors)->check(CLI::Range(1, 1 << 20));
  app.add_option("--rows", options.rows)->check(CLI::Range(1, 4096));
  app.add_option("--columns", options.columns)->check(CLI::Range(1, 4096));
  app.add_option("--runs", options.runs)->check(CLI::Range(1, 100000));
  app.add_option("--warmups", options.warmups)->check(CLI::Range(0, 1000));
  app.add_option("--json", options.json, "what rank 0 writes");
  CLI11_PARSE(app, argc, argv);
  return Measure(options);
}
