// The shortest program: a tensor goes from rows to columns, on as many ranks as there are, whatever
// has started them. Every element is checked.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sluice/job.h"
#include "sluice/layout.h"
#include "sluice/status.h"

using namespace sluice;

int main() {
  const auto session = OrDie(OpenSession());
  const std::string ranks = std::to_string(session->size());
  TensorTransfer weight = {.name = "w", .shape = {1000, 64}};
  weight.src = OrDie(Layout::Parse(ranks + ":S(0)"));
  weight.dst = OrDie(Layout::Parse(ranks + ":S(1)"));
  auto rows = OrDie(LocalTensor::Create(weight.src, weight.shape, DType::kF32, session->rank()));
  auto columns = OrDie(LocalTensor::Create(weight.dst, weight.shape, DType::kF32, session->rank()));
  const std::vector<int64_t> from = rows.GlobalIndices();
  std::copy(from.begin(), from.end(), rows.elements<float>().begin());
  Transfer* const transfer = OrDie(session->Compile({{weight}}));
  OrDie(OrDie(session->Start(transfer, {rows.view()}, {columns.view()})).Wait());
  OrDie(session->Close());
  const std::vector<int64_t> to = columns.GlobalIndices();
  if (!std::equal(to.begin(), to.end(), columns.elements<float>().begin())) return 1;
  std::printf("rank %d of %s has its columns\n", session->rank(), ranks.c_str());
}
