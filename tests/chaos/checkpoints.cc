// Checkpoints whose elements follow from seed, name and index.
#include "chaos/checkpoints.h"

#include <cstring>
#include <functional>
#include <set>
#include <utility>

#include "chaos/values.h"
#include "sluice/checkpoint.h"

namespace sluice::chaos {

using nlohmann::json;

Checkpoints::Checkpoints(Session* session, MemoryWatch* watch, Verdict* verdict, const json& specs,
                         std::string folder)
    : session_(session),
      watch_(watch),
      verdict_(verdict),
      specs_(specs),
      folder_(std::move(folder)) {
  for (const json& spec : specs) {
    saved_.push_back(PartsOf(spec, "save"));
    loaded_.push_back(PartsOf(spec, "load"));
  }
}

Checkpoints::Parts Checkpoints::PartsOf(const json& spec, const char* layout) const {
  Parts parts;
  for (const json& from : spec.at("tensors")) {
    parts.push_back(PartOf(LayoutOf(from.at(layout)), from.at("shape").get<std::vector<int64_t>>(),
                           session_->rank()));
  }
  return parts;
}

Checkpoints::Tensors Checkpoints::MakeTensors(const json& spec, const char* layout,
                                              const Parts& parts) {
  Tensors tensors;
  for (size_t i = 0; i < parts.size(); ++i) {
    const json& from = spec.at("tensors").at(i);
    CheckpointTensor tensor;
    tensor.name = from.at("name");
    tensor.shape = from.at("shape").get<std::vector<int64_t>>();
    tensor.dtype = ParseDType(from.at("dtype").get<std::string>()).value();
    tensor.layout = LayoutOf(from.at(layout));
    if (!parts[i].indices.empty()) {
      const int64_t bytes = parts[i].elements() * DTypeBytes(tensor.dtype);
      tensors.pages.emplace_back(watch_, static_cast<size_t>(bytes));
      tensor.view = DenseView(tensors.pages.back().data(), parts[i].shape(), tensor.dtype);
    }
    tensors.list.push_back(std::move(tensor));
  }
  return tensors;
}

TensorPages Checkpoints::Contents(const CheckpointTensor& tensor, const Part& part,
                                  uint64_t seed) const {
  const size_t width = static_cast<size_t>(DTypeBytes(tensor.dtype));
  TensorPages contents(watch_, static_cast<size_t>(part.elements()) * width);
  const uint64_t salt = Mix(seed, std::hash<std::string>()(tensor.name));
  const std::vector<int64_t> shape = part.shape();
  for (int64_t local = 0; local < part.elements(); ++local) {
    int64_t rest = local;
    int64_t index = 0;
    int64_t scale = 1;
    for (size_t d = shape.size(); d-- > 0;) {
      index += scale * part.indices[d][static_cast<size_t>(rest % shape[d])];
      rest /= shape[d];
      scale *= tensor.shape[d];
    }
    const uint64_t value = Mix(salt, static_cast<uint64_t>(index));
    Encode(static_cast<int64_t>(value % static_cast<uint64_t>(ExactBelow(tensor.dtype))),
           tensor.dtype, contents.data() + static_cast<size_t>(local) * width);
  }
  return contents;
}

CheckpointOptions Checkpoints::OptionsOf(const json& op) const {
  CheckpointOptions options;
  options.budget_bytes = op.at("budget_bytes");
  options.piece_bytes = op.at("piece_bytes");
  if (const int64_t slots = op.at("slots"); slots > 0) options.slots = slots;
  options.shard_bytes_max = op.at("shard_bytes_max");
  options.timeout = absl::Seconds(op.at("timeout_s").get<int64_t>());
  return options;
}

bool Checkpoints::Save(const json& op) {
  const size_t number = op.at("checkpoint");
  const json& spec = specs_.at(number);
  const Parts& parts = saved_.at(number);
  Tensors tensors = MakeTensors(spec, "save", parts);
  for (size_t i = 0, page = 0; i < tensors.list.size(); ++i) {
    if (parts[i].indices.empty()) continue;
    const TensorPages contents = Contents(tensors.list[i], parts[i], op.at("seed"));
    TensorPages& pages = tensors.pages[page++];
    std::memcpy(pages.data(), contents.data(), pages.bytes());
  }
  const CheckpointOptions options = OptionsOf(op);
  watch_->Allow(options.budget_bytes);
  const auto stats = SaveCheckpoint(session_, folder_ + "/" + spec.at("dir").get<std::string>(),
                                    tensors.list, options);
  watch_->Allow(-options.budget_bytes);
  ++verdict_->counts["saves"];
  return verdict_->Take(stats.status(), "SaveCheckpoint");
}

bool Checkpoints::Load(const json& op) {
  const size_t number = op.at("checkpoint");
  const json& spec = specs_.at(number);
  const Parts& parts = loaded_.at(number);
  Tensors tensors = MakeTensors(spec, "load", parts);
  const CheckpointOptions options = OptionsOf(op);
  watch_->Allow(options.budget_bytes);
  const auto stats = LoadCheckpoint(session_,
                                    absl::StrCat(op.at("scheme").get<std::string>(), ":", folder_,
                                                 "/", spec.at("dir").get<std::string>()),
                                    tensors.list, options);
  watch_->Allow(-options.budget_bytes);
  ++verdict_->counts["loads"];
  if (stats.status().code() == absl::StatusCode::kNotFound && op.at("may_be_absent")) {
    ++verdict_->counts["absent"];
    return true;
  }
  if (!verdict_->Take(stats.status(), "LoadCheckpoint")) return false;
  std::set<uint64_t> seeds = op.at("seeds").get<std::set<uint64_t>>();
  for (size_t i = 0, page = 0; i < tensors.list.size(); ++i) {
    if (parts[i].elements() == 0) {
      page += parts[i].indices.empty() ? 0 : 1;
      continue;
    }
    const std::byte* const got = tensors.pages[page++].data();
    ++verdict_->counts["tensors"];
    std::erase_if(seeds, [&](uint64_t seed) {
      const TensorPages want = Contents(tensors.list[i], parts[i], seed);
      const int64_t bytes = parts[i].elements() * DTypeBytes(tensors.list[i].dtype);
      return std::memcmp(want.data(), got, static_cast<size_t>(bytes)) != 0;
    });
    if (seeds.empty()) {
      verdict_->Wrong(absl::StrCat("checkpoint ", spec.at("dir").get<std::string>(), ", tensor ",
                                   tensors.list[i].name));
      return true;
    }
  }
  return true;
}

}  // namespace sluice::chaos
