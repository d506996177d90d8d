// Finds equal layouts and kinds by keys.
#include "plan/connect/half_builder.h"

#include "plan/connect/byte_code.h"
#include "plan/connect/half_code.h"

namespace sluice {
namespace {

// No half has slices. They are told apart all the same, so that CheckHalf sees each.
void AddSlice(const Layout& layout, ByteWriter* key) {
  for (const auto* of_dims : {&layout.whole, &layout.offset}) {
    key->Add(of_dims->size());
    for (const int64_t number : *of_dims) key->AddSigned(number);
  }
}

// Whatever the numbers are: nothing has been checked.
void AddKey(const Layout& layout, ByteWriter* key) {
  key->Add(reinterpret_cast<uintptr_t>(layout.mesh.identity()));
  key->Add(reinterpret_cast<uintptr_t>(layout.boxes.identity()));
  key->Add(layout.placements.size());
  key->Add(layout.order.size());
  for (const Placement& placement : layout.placements) {
    key->Add(static_cast<uint64_t>(placement.kind));
    key->AddSigned(placement.dim);
    key->AddSigned(placement.split_factor);
    key->Add(static_cast<uint64_t>(placement.op));
  }
  for (const int dim : layout.order) key->AddSigned(dim);
  AddSlice(layout, key);
}

}  // namespace

int HalfBuilder::LayoutOf(const Layout& layout) {
  ByteWriter key;
  AddKey(layout, &key);
  const auto [known, is_new] = known_layouts_.try_emplace(key.Take(), 0);
  if (!is_new) return known->second;
  // The numbers of placements and visits keep apart what would read alike.
  ByteWriter content;
  content.Add(layout.placements.size());
  content.Add(layout.order.size());
  AddSlice(layout, &content);
  content.AddBytes(EncodeLayout(layout));
  const auto number = static_cast<int>(half_.layouts.size());
  const auto [at, is_first] = layouts_.try_emplace(content.Take(), number);
  if (is_first) half_.layouts.push_back(layout);
  known->second = at->second;
  return at->second;
}

int HalfBuilder::KindOf(absl::Span<const int64_t> shape, DType dtype, const Layout& layout) {
  const int layout_number = LayoutOf(layout);
  ByteWriter key;
  for (const int64_t size : shape) key.AddSigned(size);
  key.Add(static_cast<uint64_t>(dtype));
  key.Add(static_cast<uint64_t>(layout_number));
  const auto number = static_cast<int>(half_.kinds.size());
  const auto [at, is_first] = kinds_.try_emplace(key.Take(), number);
  if (is_first) half_.kinds.push_back({{shape.begin(), shape.end()}, dtype, layout_number});
  return at->second;
}

}  // namespace sluice
