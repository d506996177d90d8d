// packed_isend_bench: Sluice against what one would write by hand for one pair of layouts.
//
// The hand-written side packs the block of every peer with plain copies of rows, sends and receives
// all blocks at once, waits for all, and unpacks. It knows only "rows to columns" and shares no
// code with the library. Both move the same tensors, in turns, in one run; every round is verified.
// 8 ranks; prints medians and the ratio.
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/mpi.h"
#include "sluice/session.h"

namespace {

using sluice::DType;

constexpr int kRanks = 8;

// A square f32 matrix: source rank i has rows, target rank j has columns.
struct Shape {
  const char* name;
  int64_t size;
  std::vector<int> src_ranks;
  std::vector<int> dst_ranks;

  int64_t rows() const { return size / static_cast<int64_t>(src_ranks.size()); }
  int64_t columns() const { return size / static_cast<int64_t>(dst_ranks.size()); }
};

int64_t IndexOf(const std::vector<int>& ranks, int rank) {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : found - ranks.begin();
}

float ValueAt(int64_t row, int64_t column) {
  return static_cast<float>((row * 131 + column * 7919) % 1000003);
}

struct Memory {
  std::vector<float> src;  // rows() x size
  std::vector<float> dst;  // size x columns()
};

Memory MakeMemory(const Shape& shape, int rank) {
  Memory memory;
  const int64_t i = IndexOf(shape.src_ranks, rank);
  if (i >= 0) {
    memory.src.resize(static_cast<size_t>(shape.rows() * shape.size));
    for (int64_t r = 0; r < shape.rows(); ++r) {
      for (int64_t c = 0; c < shape.size; ++c) {
        memory.src[static_cast<size_t>(r * shape.size + c)] = ValueAt(i * shape.rows() + r, c);
      }
    }
  }
  if (IndexOf(shape.dst_ranks, rank) >= 0) {
    memory.dst.resize(static_cast<size_t>(shape.size * shape.columns()));
  }
  return memory;
}

int64_t CountWrong(const Shape& shape, int rank, const Memory& memory) {
  const int64_t j = IndexOf(shape.dst_ranks, rank);
  int64_t wrong = 0;
  for (int64_t r = 0; j >= 0 && r < shape.size; ++r) {
    const float* row = memory.dst.data() + r * shape.columns();
    for (int64_t c = 0; c < shape.columns(); ++c) {
      if (row[c] != ValueAt(r, j * shape.columns() + c)) ++wrong;
    }
  }
  return wrong;
}

// The straightforward loop. Buffers are made once, as a careful author would.
class ByHand {
 public:
  ByHand(const Shape& shape, int rank) : shape_(shape), rank_(rank) {
    const auto block = static_cast<size_t>(shape.rows() * shape.columns());
    if (IndexOf(shape.src_ranks, rank) >= 0) out_.resize(block * shape.dst_ranks.size());
    if (IndexOf(shape.dst_ranks, rank) >= 0) in_.resize(block * shape.src_ranks.size());
    requests_.reserve(shape.dst_ranks.size() + shape.src_ranks.size());
  }

  void Run(Memory* memory) {
    requests_.clear();
    if (!in_.empty()) Receive();
    if (!out_.empty()) PackAndSend(*memory);
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    if (!in_.empty()) Unpack(memory);
  }

 private:
  int64_t BlockElements() const { return shape_.rows() * shape_.columns(); }

  void Receive() {
    for (size_t i = 0; i < shape_.src_ranks.size(); ++i) {
      if (shape_.src_ranks[i] == rank_) continue;
      MPI_Irecv(in_.data() + static_cast<int64_t>(i) * BlockElements(),
                static_cast<int>(BlockElements()), MPI_FLOAT, shape_.src_ranks[i], 0,
                MPI_COMM_WORLD, &requests_.emplace_back());
    }
  }

  void PackAndSend(const Memory& memory) {
    for (size_t j = 0; j < shape_.dst_ranks.size(); ++j) {
      const bool to_self = shape_.dst_ranks[j] == rank_;
      const int64_t mine = IndexOf(shape_.src_ranks, rank_);
      float* block = to_self ? in_.data() + mine * BlockElements()
                             : out_.data() + static_cast<int64_t>(j) * BlockElements();
      const float* from = memory.src.data() + static_cast<int64_t>(j) * shape_.columns();
      const auto row_bytes = static_cast<size_t>(shape_.columns()) * sizeof(float);
      for (int64_t r = 0; r < shape_.rows(); ++r) {
        std::memcpy(block + r * shape_.columns(), from + r * shape_.size, row_bytes);
      }
      if (to_self) continue;
      MPI_Isend(block, static_cast<int>(BlockElements()), MPI_FLOAT, shape_.dst_ranks[j], 0,
                MPI_COMM_WORLD, &requests_.emplace_back());
    }
  }

  // Blocks are whole rows of the target, which lie one after the other.
  void Unpack(Memory* memory) {
    for (size_t i = 0; i < shape_.src_ranks.size(); ++i) {
      const int64_t offset = static_cast<int64_t>(i) * BlockElements();
      std::memcpy(memory->dst.data() + offset, in_.data() + offset,
                  static_cast<size_t>(BlockElements()) * sizeof(float));
    }
  }

  const Shape& shape_;
  int rank_;
  std::vector<float> out_;
  std::vector<float> in_;
  std::vector<MPI_Request> requests_;
};

[[noreturn]] void Fail(const absl::Status& status) {
  std::fprintf(stderr, "packed_isend_bench: %s\n", absl::StrCat(status.message()).c_str());
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  std::_Exit(EXIT_FAILURE);
}

template <typename T>
T Get(absl::StatusOr<T> value) {
  if (!value.ok()) Fail(value.status());
  return *std::move(value);
}

class BySluice {
 public:
  BySluice(const Shape& shape, int rank, Memory* memory, sluice::Session* session)
      : session_(session) {
    sluice::TransferSpec spec;
    sluice::TensorTransfer& tensor = spec.tensors.emplace_back();
    tensor.name = "matrix";
    tensor.shape = {shape.size, shape.size};
    tensor.src = LayoutOver(shape.src_ranks, 0);
    tensor.dst = LayoutOver(shape.dst_ranks, 1);
    transfer_ = Get(session->Compile(spec));
    src_ = sluice::DenseView(memory->src.data(),
                             Get(sluice::LocalShape(tensor.src, tensor.shape, rank)), DType::kF32);
    dst_ = sluice::DenseView(memory->dst.data(),
                             Get(sluice::LocalShape(tensor.dst, tensor.shape, rank)), DType::kF32);
  }

  void Run() {
    const auto run = Get(session_->Start(transfer_, {&src_, 1}, {&dst_, 1}));
    absl::Status status = run.Wait();
    if (!status.ok()) Fail(status);
  }

 private:
  static sluice::Layout LayoutOver(const std::vector<int>& ranks, int dim) {
    auto mesh = sluice::Mesh::Create({static_cast<int64_t>(ranks.size())}, ranks);
    return {Get(std::move(mesh)), {sluice::Placement::Shard(dim)}};
  }

  sluice::Session* session_;
  sluice::Transfer* transfer_ = nullptr;
  sluice::TensorView src_;
  sluice::TensorView dst_;
};

// Seconds from the first rank's start to the last rank's end.
template <typename Run>
double Time(Run run) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  run();
  double end = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return end - start;
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

void Report(const Shape& shape, const std::vector<double>& by_hand,
            const std::vector<double>& by_sluice) {
  std::vector<double> ratios;
  for (size_t i = 0; i < by_hand.size(); ++i) ratios.push_back(by_hand[i] / by_sluice[i]);
  std::printf(
      "%-28s %6.0f MB  by hand %7.1f ms  sluice %7.1f ms  speed ratio %.2f of medians, "
      "%.2f median of rounds (quartiles %.2f .. %.2f)\n",
      shape.name, static_cast<double>(shape.size * shape.size) * 4e-6, 1e3 * Quantile(by_hand, 0.5),
      1e3 * Quantile(by_sluice, 0.5), Quantile(by_hand, 0.5) / Quantile(by_sluice, 0.5),
      Quantile(ratios, 0.5), Quantile(ratios, 0.25), Quantile(ratios, 0.75));
  std::fflush(stdout);
}

// Returns the number of wrong elements on all ranks in all rounds.
int64_t Compare(const Shape& shape, int rank, int rounds, sluice::Session* session) {
  Memory memory = MakeMemory(shape, rank);
  ByHand by_hand(shape, rank);
  BySluice by_sluice(shape, rank, &memory, session);
  std::vector<double> hand_seconds;
  std::vector<double> sluice_seconds;
  int64_t wrong = 0;
  for (int round = -1; round < rounds; ++round) {  // the first is to warm up
    for (int turn = 0; turn < 2; ++turn) {
      const bool hand = (round + turn) % 2 == 0;  // in alternating order
      std::fill(memory.dst.begin(), memory.dst.end(), -1.0F);
      const double seconds =
          hand ? Time([&] { by_hand.Run(&memory); }) : Time([&] { by_sluice.Run(); });
      wrong += CountWrong(shape, rank, memory);
      if (round >= 0) (hand ? hand_seconds : sluice_seconds).push_back(seconds);
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) Report(shape, hand_seconds, sluice_seconds);
  return wrong;
}

int Run(int64_t size, int rounds) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != kRanks || size % kRanks != 0) {
    if (rank == 0) std::fprintf(stderr, "needs %d ranks and a size they divide\n", kRanks);
    return EXIT_FAILURE;
  }
  auto session = Get(sluice::Session::Create(Get(sluice::MakeMpiFabric(MPI_COMM_WORLD)), {}));
  std::vector<int> all(kRanks);
  std::iota(all.begin(), all.end(), 0);
  const Shape shapes[] = {{"rows on 4 -> columns on 4", size, {0, 1, 2, 3}, {4, 5, 6, 7}},
                          {"rows -> columns on the same 8", size, all, all}};
  int64_t wrong = 0;
  for (const Shape& shape : shapes) wrong += Compare(shape, rank, rounds, session.get());
  if (rank == 0) std::printf("# Out of bounds values : %lld\n", static_cast<long long>(wrong));
  absl::Status closed = session->Close();
  if (!closed.ok()) Fail(closed);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t size = 8192;
  int rounds = 15;
  CLI::App app("Sluice against a hand-written loop of packed non-blocking sends; 8 ranks.");
  app.add_option("--size", size, "rows and columns of the f32 matrix [8192]");
  app.add_option("--rounds", rounds, "timed rounds [15]")->check(CLI::Range(11, 10000));
  CLI11_PARSE(app, argc, argv);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  const int code = Run(size, rounds);
  MPI_Finalize();
  return code;
}
