// Tensors, files, sessions.
#include "checkpoint/checkpoint_dir.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "oracle/make_layout.h"
#include "oracle/random_layout.h"
#include "session/world.h"
#include "storage/format/checkpoint_index.h"
#include "storage/format/safetensors.h"

namespace sluice::checkpoint_test {

using oracle::Dice;
using session_test::Side;
using session_test::TensorMemory;
using session_test::ViewStyle;

std::vector<TensorTransfer> RandomTensors(uint64_t seed, int save_ranks, int load_ranks,
                                          bool casts) {
  Dice dice(seed);
  std::vector<TensorTransfer> tensors;
  const int64_t count = dice.Between(1, 8);
  for (int64_t t = 0; t < count; ++t) {
    TensorTransfer tensor;
    tensor.name = absl::StrCat("layers.", t, ".weight");
    tensor.shape = oracle::RandomShape(&dice, 4, 6000);
    tensor.src_dtype = dice.Pick<DType>({DType::kF32, DType::kBF16, DType::kF16, DType::kI64,
                                         DType::kU8, DType::kF64, DType::kF8E4M3});
    const bool floating = tensor.src_dtype <= DType::kF8E5M2;
    tensor.dst_dtype = casts && floating && dice.Chance(50)
                           ? dice.Pick<DType>({DType::kF32, DType::kBF16, DType::kF16})
                           : tensor.src_dtype;
    const int dims = static_cast<int>(tensor.shape.size());
    tensor.src = oracle::RandomLayout(&dice, oracle::RankRange(0, save_ranks), dims);
    tensor.dst = oracle::RandomLayout(&dice, oracle::RankRange(0, load_ranks), dims);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::vector<TensorTransfer> RandomBoxTensors(uint64_t seed, int save_ranks, int load_ranks) {
  Dice dice(seed + 300);
  std::vector<TensorTransfer> tensors = RandomTensors(seed, save_ranks, load_ranks);
  const auto put_in_boxes = [&dice](const TensorTransfer& tensor, int ranks, bool covers,
                                    Layout* layout) {
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) return;
    if (!dice.Chance(70)) return;
    *layout = {};
    layout->boxes = oracle::RandomBoxes(&dice, tensor.shape, oracle::RankRange(0, ranks), covers);
  };
  for (TensorTransfer& tensor : tensors) {
    put_in_boxes(tensor, save_ranks, true, &tensor.src);
    put_in_boxes(tensor, load_ranks, false, &tensor.dst);
  }
  return tensors;
}

std::vector<TensorTransfer> PlainTensors(int ranks, absl::string_view placements) {
  const Layout layout = oracle::MakeLayout(ranks, placements);
  std::vector<TensorTransfer> tensors;
  for (const char* name : {"a", "b", "c"}) {
    tensors.push_back({name, {64, 32}, DType::kF32, DType::kF32, layout, layout});
  }
  return tensors;
}

int64_t FileBytes(const std::vector<TensorTransfer>& tensors) {
  int64_t bytes = 0;
  for (const TensorTransfer& tensor : tensors) {
    int64_t own = DTypeBytes(tensor.src_dtype);
    for (const int64_t size : tensor.shape) own *= size;
    bytes += own;
  }
  return bytes;
}

std::string CheckpointDir::FileOf(int file, int files) const {
  return absl::StrFormat("%s/part-%d-of-%d.safetensors", path_, file, files);
}

void CheckpointDir::Write(const std::vector<TensorTransfer>& tensors, int files,
                          bool with_index) const {
  CheckpointIndex index;
  for (int file = 0; file < files; ++file) {
    std::vector<SafetensorsSpec> specs;
    std::vector<size_t> numbers;
    for (size_t t = static_cast<size_t>(file); t < tensors.size();
         t += static_cast<size_t>(files)) {
      specs.push_back({tensors[t].name, *ElementTypeOf(tensors[t].src_dtype), tensors[t].shape});
      numbers.push_back(t);
      index.tensors.push_back({tensors[t].name, file});
    }
    const auto layout = LayOutSafetensors(specs).value();
    std::string bytes = layout.header;
    bytes.resize(static_cast<size_t>(layout.object_bytes));
    for (size_t i = 0; i < numbers.size(); ++i) {
      const TensorTransfer& tensor = tensors[numbers[i]];
      const session_test::ElementValues values(tensor, numbers[i]);
      const size_t element_bytes = static_cast<size_t>(DTypeBytes(tensor.src_dtype));
      const size_t elements = static_cast<size_t>(layout.tensors[i].bytes()) / element_bytes;
      for (size_t g = 0; g < elements; ++g) {
        const uint64_t code = values.Source(kRound, static_cast<int64_t>(g), 0);
        std::memcpy(bytes.data() + static_cast<size_t>(layout.tensors[i].begin) + g * element_bytes,
                    &code, element_bytes);
      }
    }
    std::ofstream(FileOf(file, files), std::ios::binary) << bytes;
    index.files.push_back(std::filesystem::path(FileOf(file, files)).filename().string());
  }
  if (!with_index) return;
  const auto text = CheckpointIndexText(index).value();
  std::ofstream(path_ + "/model.safetensors.index.json") << text;
}

RankTensors::RankTensors(const std::vector<TensorTransfer>& of, Side side, int rank,
                         uint64_t style_seed, const std::shared_ptr<Accelerator>& accelerator) {
  Dice dice(style_seed * 1000 + static_cast<uint64_t>(rank));
  std::shared_ptr<Device> device;
  if (accelerator != nullptr) {
    absl::StatusOr<std::unique_ptr<Device>> opened = accelerator->OpenDevice();
    EXPECT_TRUE(opened.ok()) << opened.status();
    if (opened.ok()) device = *std::move(opened);
  }
  memory.reserve(of.size());
  for (size_t t = 0; t < of.size(); ++t) {
    const auto add = [&](const Box* box) {
      const auto style = static_cast<ViewStyle>(dice.Between(0, 3));
      memory.emplace_back(of[t], t, side, rank, style, session_test::Likeness(), box);
      tensor_of.push_back(t);
      if (device != nullptr && dice.Chance(75)) memory.back().PutOn(device, *accelerator);
      if (side == Side::kSource) {
        memory.back().Fill(kRound);
      } else {
        memory.back().Poison(kRound);
      }
      return memory.back().view();
    };
    CheckpointTensor tensor;
    tensor.name = of[t].name;
    tensor.shape = of[t].shape;
    tensor.dtype = side == Side::kSource ? of[t].src_dtype : of[t].dst_dtype;
    tensor.layout = side == Side::kSource ? of[t].src : of[t].dst;
    if (tensor.layout.boxes.empty()) {
      tensor.view = add(nullptr);
    } else {
      for (const Box& box : tensor.layout.boxes.Of(rank)) tensor.view.boxes.push_back(add(&box));
    }
    tensors.push_back(std::move(tensor));
  }
}

void RankTensors::ExpectHolds(uint64_t round) const {
  for (size_t m = 0; m < memory.size(); ++m) {
    const CheckpointTensor& tensor = tensors[tensor_of[m]];
    EXPECT_TRUE(memory[m].Holds(round)) << tensor.name << ": " << memory[m].Difference(round)
                                        << "; " << oracle::Describe(tensor.layout, tensor.shape);
  }
}

void RankTensors::ExpectPoisoned(uint64_t round) const {
  for (size_t m = 0; m < memory.size(); ++m) {
    EXPECT_TRUE(memory[m].IsPoisoned(round)) << tensors[tensor_of[m]].name;
  }
}

void WithSessions(int ranks, const std::function<void(int rank, Session* session)>& body,
                  bool progress_thread) {
  session_test::RunRanks(ranks, [&](session_test::Rank& self) {
    const int rank = self.rank;
    SessionOptions options;
    options.progress_thread = progress_thread;
    auto session = Session::Create(std::move(self.fabric), options).value();
    body(rank, session.get());
    self.meet();
    EXPECT_TRUE(session->Close().ok());
  });
}

absl::Status ErrorOnAll(int ranks, const std::function<absl::Status(int, Session*)>& call) {
  std::mutex mutex;
  absl::Status first;
  std::set<absl::StatusCode> codes;
  WithSessions(ranks, [&](int rank, Session* session) {
    const absl::Status status = call(rank, session);
    const std::lock_guard<std::mutex> lock(mutex);
    codes.insert(status.code());
    if (rank == 0) first = status;
  });
  EXPECT_EQ(codes.size(), 1u);
  EXPECT_FALSE(first.ok());
  return first;
}

}  // namespace sluice::checkpoint_test
